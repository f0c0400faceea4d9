/** Sums with a budget of bytes: which elements are sent, and how steps follow from counts. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { closeSparse } from '../../../src/admb/state/sparse-rounding.js'
import { SparseSums } from '../../../src/learning/rules/sparse-sums.js'
import { MAX_OWN } from '../../../src/numeric/block-code.js'
import { rounded } from '../../../src/numeric/lattice.js'
import { SumBlock } from '../../../src/numeric/sums.js'

const BYTES = 0.03
const LENGTH = 4096
const layout = { blocks: [{ name: 'layer', length: LENGTH }] }
const sparse = new SparseSums(BYTES, layout)
const [limit] = sparse.limits()

/** The block after a batch of that many contributors, each of which has sent its budget with that mean magnitude. */
function after(before: Float32Array, contributors: number, mean: number, share = 1): Float32Array {
  const counts = new Float32Array(sparse.length)
  const sent = Math.round(share * contributors * limit)
  sparse.count(counts, 0, sent, mean * sent)
  return sparse.next(before, counts, 100, undefined, contributors)
}

describe('a budget of bytes', () => {
  it('is one of elements: no more are sent, and the largest ones are', () => {
    const values = fc.array(fc.integer({ min: -64, max: 64 }), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(values, values, fc.integer({ min: 0, max: 20 }), fc.integer({ min: -2, max: 4 }), (a, b, most, e) => {
        const given = Float32Array.from(a)
        const residual = Float32Array.from(a, (_, i) => b[i % b.length])
        const progress = given.map((value, i) => value + residual[i])
        const total = new SumBlock(new Float32Array(a.length))
        const { nonZero, magnitude } = closeSparse(new SumBlock(given), total, residual, 2 ** e, most, MAX_OWN)
        const sent = total.read()
        const reaches = (value: number) => rounded(value, 2 ** e) !== 0
        // Nothing is lost.
        for (const [i, whole] of progress.entries()) {
          assert.equal(given[i], sent[i] * 2 ** e)
          assert.equal(given[i] + residual[i], whole)
        }
        const magnitudes = (isSent: boolean) =>
          Array.from(progress, Math.abs).filter((_, i) => (sent[i] !== 0) === isSent && reaches(progress[i]))
        assert.equal(nonZero, magnitudes(true).length)
        assert.equal(nonZero, Math.min(most, Array.from(progress).filter(reaches).length))
        assert.equal(
          magnitude,
          sent.reduce((sum, integer) => sum + Math.abs(integer), 0)
        )
        // Magnitudes that differ by less than one in 128 are alike.
        const [kept, smallest] = [Math.max(0, ...magnitudes(false)), Math.min(...magnitudes(true))]
        assert.ok(nonZero === 0 || smallest * (1 + 1 / 128) >= kept, `${smallest} is sent, and ${kept} is not`)
      })
    )
  })

  it('takes about as many bytes', () => {
    // A position among 1 / density elements, a sign and a magnitude.
    const bits = (limit / LENGTH) * (Math.log2(LENGTH / limit) + 3.8)
    assert.ok(Math.abs(bits / 8 / BYTES - 1) < 0.05, `${bits / 8} bytes`)
  })
})

describe('steps of sparse sums', () => {
  it('double for large integers, and halve where little is sent', () => {
    const start = sparse.initial()
    assert.equal(after(start, 4, 1.3)[0], start[0])
    assert.equal(after(start, 4, 1.5)[0], start[0] + 1)
    assert.equal(after(start, 4, 1.3, 0.5)[0], start[0] - 1)
    assert.equal(after(start, 4, 9, 0.1)[0], start[0] + 1)
    assert.equal(after(start, 4, 0, 0)[0], start[0] - 1)
  })

  it('follow from counts of any number of contributors in any order', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(LENGTH), { minLength: 1, maxLength: 40 }), given => {
        const counts = (sent: readonly number[]) => {
          const block = new Float32Array(sparse.length)
          for (const elements of sent) sparse.count(block, 0, elements, 2 * elements)
          return sparse.next(sparse.initial(), block, 1, undefined, sent.length)
        }
        assert.deepEqual(counts(given), counts([...given].reverse()))
      })
    )
  })

  it('are limited, whatever a neighbour sends', () => {
    for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, -1e9, 0.3]) {
      const parameters = [new Float32Array(LENGTH), new Float32Array(sparse.length).fill(wrong)]
      const [exponents] = sparse.grid(parameters)
      assert.ok(exponents.every(exponent => Math.abs(exponent) <= 64))
    }
  })
})

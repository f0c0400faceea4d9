/** Blocks in a range code: what is read is what was written, and whatever else arrives is refused. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { FrameError, integerBlock, Reader } from '../../../src/admb/wire/bytes.js'
import { decodeClustered, encodeClustered } from '../../../src/admb/wire/range-coder.js'
import { Random } from '../../../src/data/random.js'
import { SumBlock } from '../../../src/numeric/sums.js'
import { referenceBlock } from '../../support/range-reference.js'

/** Blocks whose nonzero elements are in clusters. Magnitudes have at most the given number of bits. */
const blocks = fc
  .record({
    length: fc.constantFrom(1, 2, 300, 5000, 70_000),
    density: fc.constantFrom(0.001, 0.02, 0.2, 1),
    bits: fc.constantFrom(1, 3, 10, 24),
    seed: fc.nat()
  })
  .map(({ length, density, bits, seed }) => {
    const random = new Random(seed)
    let isDense = false
    return Float32Array.from({ length }, () => {
      if (random.uniform() < 0.02) isDense = random.uniform() < density
      const isThere = random.uniform() < (isDense ? 0.5 : density / 4)
      return (isThere ? Math.trunc((2 * random.uniform() - 1) * 2 ** (1 + bits * random.uniform())) : 0) + 0
    })
  })

const nonZeroIn = (block: Float32Array) => block.reduce((count, value) => count + (value === 0 ? 0 : 1), 0)

describe('blocks in a range code', () => {
  it('are read as they were written, by this decoder and by a plain one', () => {
    fc.assert(
      fc.property(blocks, fc.boolean(), (block, isSparse) => {
        const sum = new SumBlock(block)
        if (isSparse) sum.makeSparse()
        const bytes = encodeClustered(sum)
        const count = nonZeroIn(block)
        const padded = new Uint8Array(bytes.length + 2).fill(255)
        padded.set(bytes, 1)
        const into = new SumBlock(new Float32Array(block.length).fill(Number.NaN))
        decodeClustered(padded, 1, 1 + bytes.length, count, into)
        assert.deepEqual(into.read(), block)
        if (count < 2000) assert.deepEqual(referenceBlock(bytes, count, block.length), block)
      }),
      { numRuns: 150 }
    )
  })

  it('contain integers of magnitude 2^28, and the longest gaps', () => {
    const block = new Float32Array(2 ** 20)
    block[block.length - 1] = -(2 ** 28)
    block[3] = 2 ** 28
    const into = SumBlock.zeros(block.length)
    const bytes = encodeClustered(new SumBlock(block))
    decodeClustered(bytes, 0, bytes.length, 2, into)
    assert.deepEqual(into.read(), block)
  })

  it('are refused, or are other integers of the block, if bytes are lost, added or changed', () => {
    fc.assert(
      fc.property(blocks, fc.nat(), fc.nat(255), fc.nat(80_000), (block, position, byte, other) => {
        const bytes = encodeClustered(new SumBlock(block))
        const count = nonZeroIn(block)
        const into = SumBlock.zeros(block.length)
        const attempt = (given: Uint8Array, elements: number) => {
          try {
            decodeClustered(given, 0, given.length, elements, into)
          } catch (error) {
            assert.ok(error instanceof RangeError)
            return
          }
          const read = into.read()
          assert.ok(read.every(value => Number.isInteger(value) && Math.abs(value) <= 2 ** 28))
          assert.equal(nonZeroIn(read), elements)
        }
        const damaged = bytes.slice()
        if (bytes.length > 0) damaged[position % bytes.length] = byte
        attempt(damaged, count)
        attempt(bytes.slice(0, position % (bytes.length + 1)), count)
        attempt(bytes, other % (block.length + 1))
        const longer = new Uint8Array(bytes.length + 9)
        longer.set(bytes)
        assert.throws(() => decodeClustered(longer, 0, longer.length, count, into), RangeError)
        if (bytes.length > 20) assert.throws(() => decodeClustered(bytes, 0, bytes.length - 9, count, into), RangeError)
      }),
      { numRuns: 200 }
    )
  })

  it('are what a frame contains where they take fewer bytes, and frames refuse them if they are not whole', () => {
    const random = new Random(1)
    const block = Float32Array.from({ length: 4000 }, (_, i) => (i % 400 < 40 && random.uniform() < 0.5 ? 1 : 0))
    const layout = { blocks: [{ name: 'w', length: block.length }] }
    const bytes = integerBlock(new SumBlock(block), [], true)
    assert.ok(bytes.length < integerBlock(new SumBlock(block)).length)
    const [sum] = new Reader(bytes, bytes.length).sum(layout)
    assert.deepEqual(sum.read(), block)
    // After the length of the block in two bytes.
    assert.equal(bytes[2], 4)
    for (const [length, complaint] of [
      [bytes.length - 1, /truncated|end/],
      [5, /truncated|end|exceeds/]
    ] as const)
      assert.throws(
        () => new Reader(bytes.subarray(0, length), length).sum(layout),
        (error: Error) => error instanceof FrameError && complaint.test(error.message)
      )
    const unknown = bytes.slice()
    unknown[2] = 5
    assert.throws(() => new Reader(unknown, unknown.length).sum(layout), /unknown encoding 5/)
  })
})

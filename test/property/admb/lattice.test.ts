/** Integer sums: coding, rounding without loss, and the same bits in any order of additions. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Rounding } from '../../../src/admb/state/rounding.js'
import { addInto, zeros } from '../../../src/admb/state/vectors.js'
import { decodeIntegers, encodeIntegers } from '../../../src/admb/wire/integers.js'
import { Random } from '../../../src/data/random.js'
import { createRule, digest, latticeRecipe, ruleNames } from '../../../src/learning/index.js'
import type { RuleState } from '../../../src/learning/types.js'
import { MAX_ROUNDED } from '../../../src/numeric/block-code.js'
import { exponentOfRoot, type Grid, rounded, stepOf, valuesOf } from '../../../src/numeric/lattice.js'
import { blocksOf, type Sum, SumBlock, sumOf } from '../../../src/numeric/sums.js'
import { referenceBytes } from '../../support/rice-reference.js'

interface Shape {
  readonly length: number
  readonly density: number
  readonly bits: number
  readonly seed: number
}

/** Shapes of blocks as they occur: mostly zeros and small numbers, sometimes any number. */
const shapes: fc.Arbitrary<Shape> = fc.record({
  length: fc.constantFrom(0, 1, 2, 255, 256, 257, 1000, 70_000),
  density: fc.constantFrom(0, 0.001, 0.02, 0.3, 1),
  bits: fc.constantFrom(1, 2, 4, 9, 16, 25),
  seed: fc.nat()
})

function blockOf({ length, density, bits, seed }: Shape): Float32Array {
  const random = new Random(seed)
  // Adding 0 turns −0 into 0.
  return Float32Array.from(
    { length },
    () => (random.uniform() < density ? Math.trunc((2 * random.uniform() - 1) * 2 ** (bits * random.uniform())) : 0) + 0
  )
}

describe('integer blocks', () => {
  it('are decoded as they were encoded, up to their last byte', () => {
    fc.assert(
      fc.property(shapes, shape => {
        const values = blockOf(shape)
        const bytes = encodeIntegers(new SumBlock(values))
        const decoded = new SumBlock(new Float32Array(values.length).fill(Number.NaN))
        const padded = new Uint8Array(bytes.length + 2).fill(255)
        padded.set(bytes, 1)
        assert.equal(decodeIntegers(padded, 1, padded.length, decoded), 1 + bytes.length)
        assert.deepEqual(decoded.read(), Float32Array.from(values))
      }),
      { numRuns: 200 }
    )
  })

  it('have the bytes of a plain encoder', () => {
    fc.assert(
      fc.property(shapes, shape => {
        const values = blockOf(shape)
        assert.deepEqual(encodeIntegers(new SumBlock(values)), referenceBytes(values))
      }),
      { numRuns: 200 }
    )
    const extremes = fc.constantFrom(0, 0, 1, -1, 32_767, -32_767, 2 ** 24, -(2 ** 24), 2 ** 28, -(2 ** 28))
    fc.assert(
      fc.property(fc.array(extremes, { maxLength: 600 }), list => {
        const values = Float32Array.from(list)
        assert.deepEqual(encodeIntegers(new SumBlock(values)), referenceBytes(values))
      })
    )
  })

  it('have the same bytes if only the elements of their support are visited', () => {
    fc.assert(
      fc.property(shapes, shape => {
        // Numbers that float32 holds, and elements that became 0 again.
        const values = blockOf({ ...shape, bits: Math.min(shape.bits, 22) })
        const block = SumBlock.zeros(values.length)
        for (const [i, value] of values.entries()) if (value !== 0 || i % 99 === 0) block.set(i, value)
        assert.deepEqual(encodeIntegers(block), encodeIntegers(new SumBlock(values)))
        const again = SumBlock.zeros(values.length)
        const bytes = encodeIntegers(block)
        decodeIntegers(bytes, 0, bytes.length, again)
        assert.deepEqual(again.read(), values)
        const known = again.isSparse ? new Set(again.indices) : undefined
        for (const [i, value] of values.entries()) if (value !== 0) assert.ok(known?.has(i) ?? true)
      }),
      { numRuns: 60 }
    )
  })

  it('take no more than 4 bytes an element and a few bytes', () => {
    fc.assert(
      fc.property(shapes, shape => encodeIntegers(new SumBlock(blockOf(shape))).length <= 4.2 * shape.length + 16)
    )
  })

  it('are rejected if they are cut off, and never take more memory than their block if they are damaged', () => {
    fc.assert(
      fc.property(shapes, fc.nat(), fc.nat(255), (shape, position, byte) => {
        const bytes = encodeIntegers(new SumBlock(blockOf(shape)))
        const into = SumBlock.zeros(shape.length)
        assert.throws(() => decodeIntegers(bytes, 0, bytes.length - 1, into), RangeError)
        assert.throws(() => decodeIntegers(bytes, 0, position % bytes.length, into), RangeError)
        const damaged = bytes.slice()
        damaged[position % bytes.length] = byte
        try {
          assert.ok(decodeIntegers(damaged, 0, damaged.length, into) <= damaged.length)
        } catch (error) {
          assert.ok(error instanceof RangeError)
        }
      }),
      { numRuns: 300 }
    )
  })
})

const LENGTH = 6
const layout = { blocks: [{ name: 'w', length: LENGTH }] }
const grids = fc
  .array(fc.integer({ min: -6, max: 6 }), { minLength: LENGTH, maxLength: LENGTH })
  .map((exponents): Grid => [Int8Array.from(exponents)])
const gradients = fc
  .array(fc.float({ min: -64, max: 64, noNaN: true }), { minLength: LENGTH, maxLength: LENGTH })
  .map(values => Float32Array.from(values))

describe('a long dense chunk among zeros', () => {
  const CHUNK = 2 ** 16
  for (const bits of [2, 9, 25]) {
    it(`is decoded, and rejected if it is cut off, with numbers of ${bits} bits`, () => {
      const block = new Float32Array(40 * CHUNK)
      block.set(blockOf({ length: CHUNK, density: 1, bits, seed: 1 }), 3 * CHUNK)
      const bytes = encodeIntegers(new SumBlock(block))
      const decoded = new SumBlock(new Float32Array(block.length).fill(Number.NaN))
      assert.equal(decodeIntegers(bytes, 0, bytes.length, decoded), bytes.length)
      assert.deepEqual(decoded.read(), block)
      assert.throws(() => decodeIntegers(bytes, 0, 100, decoded), RangeError)
      assert.throws(() => decodeIntegers(bytes, 0, bytes.length >> 1, decoded), RangeError)
    })
  }
})

describe('rounding', () => {
  it('loses less than a step over any number of segments on any grids', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(gradients, grids), { minLength: 1, maxLength: 40 }), segments => {
        const rounding = new Rounding(layout)
        const given = new Float64Array(LENGTH)
        const sent = new Float64Array(LENGTH)
        for (const [gradient, grid] of segments) {
          for (let i = 0; i < LENGTH; i++) given[i] += gradient[i]
          const sum = zeros(layout)
          rounding.close(sumOf([gradient.slice()]), sum, grid, false)
          const [values] = valuesOf(blocksOf(sum), grid)
          for (let i = 0; i < LENGTH; i++) sent[i] += values[i]
        }
        const [, grid] = segments[segments.length - 1]
        for (let i = 0; i < LENGTH; i++) {
          const tolerance = 1e-4 + 0.5001 * stepOf(grid[0], i)
          assert.ok(Math.abs(given[i] - sent[i]) <= tolerance, `${given[i]} and ${sent[i]}`)
          assert.ok(Math.abs(given[i] - sent[i] - rounding.residual[0][i]) < 1e-3)
        }
      })
    )
  })

  it('rounds each element of a dense block to the nearest multiple of its step, halves up, as long as its sum is valid', () => {
    const values = fc.array(
      fc.oneof(
        fc.constantFrom(0, -0, 0.5, -0.5, 1.5, 0.49999997, -0.49999997, 3e6, -3e6),
        fc.float({ noNaN: true, min: -1e6, max: 1e6 })
      ),
      {
        minLength: 1,
        maxLength: 40
      }
    )
    fc.assert(
      fc.property(
        fc.array(values, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: -12, max: 12 }),
        fc.boolean(),
        (lists, first, isUniform) => {
          const length = Math.max(...lists.map(list => list.length))
          const rounding = new Rounding({ blocks: [{ name: 'w', length }] })
          const exponents = Int8Array.from({ length: isUniform ? 1 : length }, (_, i) => first + (i % 4))
          const sum = sumOf([new Float32Array(length)])
          const [totals, residual] = [new Float32Array(length), new Float32Array(length)]
          for (const list of lists) {
            const open = Float32Array.from({ length }, (_, i) => list[i] ?? 0)
            const kept = open.map((value, i) => {
              const exact = value + residual[i]
              const integer = rounded(exact, stepOf(exponents, i))
              const isValid = Math.abs(totals[i] + integer) <= 2 ** 17
              if (isValid) totals[i] += integer
              const multiple = isValid ? integer * stepOf(exponents, i) : 0
              residual[i] = exact - multiple
              return multiple
            })
            const segment = sumOf([open])
            rounding.close(segment, sum, [exponents], false)
            for (const [found, expected] of [
              [segment[0].read(), kept],
              [sum[0].read(), totals],
              [rounding.residual[0], residual]
            ])
              for (const [i, value] of expected.entries()) assert.ok(found[i] === value, `${found[i]} is not ${value}`)
          }
        }
      ),
      { numRuns: 300 }
    )
  })

  it('gives integers that every order and tree of additions sums to the same bits', () => {
    const list = fc.array(fc.tuple(gradients, fc.nat(1000)), { minLength: 2, maxLength: 12 })
    fc.assert(
      fc.property(list, grids, (segments, grid) => {
        const sums = segments.map(([gradient, key]) => {
          const sum = zeros(layout)
          new Rounding(layout).close(sumOf([gradient.slice()]), sum, grid, false)
          return { sum, key }
        })
        const chain = zeros(layout)
        for (const { sum } of sums) addInto(chain, sum)
        // A tree that joins neighbours in another order.
        let level = sums.toSorted((a, b) => a.key - b.key).map(({ sum }) => sumOf([sum[0].read().slice()]))
        while (level.length > 1) {
          const next: Sum[] = []
          for (let i = 0; i < level.length; i += 2) {
            if (i + 1 < level.length) addInto(level[i], level[i + 1])
            next.push(level[i])
          }
          level = next
        }
        assert.deepEqual(blocksOf(level[0]), blocksOf(chain))
      })
    )
  })

  it('leaves what exceeds the largest integer for later segments', () => {
    const grid: Grid = [Int8Array.of(0)]
    const layout = { blocks: [{ name: 'w', length: 1 }] }
    const rounding = new Rounding(layout)
    const sum = zeros(layout)
    rounding.close(sumOf([Float32Array.of(3 * MAX_ROUNDED)]), sum, grid, false)
    assert.equal(sum[0].values[0], MAX_ROUNDED)
    rounding.close(zeros(layout), sum, grid, false)
    rounding.close(zeros(layout), sum, grid, false)
    assert.equal(sum[0].values[0], 3 * MAX_ROUNDED)
    assert.equal(rounding.residual[0][0], 0)
  })

  it('writes what is left of other elements of a sparse block to the segment, from which it is carried over', () => {
    const length = 2 ** 14
    const layout = { blocks: [{ name: 'w', length }] }
    const [fine, coarse]: Grid[] = [[Int8Array.of(0)], [Int8Array.of(2)]]
    const rounding = new Rounding(layout)
    rounding.settle([{ indices: Int32Array.of(5), values: Float32Array.of(1) }], fine, undefined, coarse)
    const [segment, sum] = [SumBlock.zeros(length), SumBlock.zeros(length)]
    segment.add(9, 3)
    rounding.close([segment], [sum], fine, false)
    const elements = { indices: Int32Array.of(5, 9), values: Float32Array.of(1, 3) }
    assert.deepEqual([segment.compactCopy(), sum.compactCopy()], [elements, elements])
    segment.clear()
    assert.ok(segment.read().every(value => value === 0))
  })
})

describe('the steps of a grid', () => {
  it('are the powers of two that are nearest to the root, in ratio', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-30, max: 1e30, noNaN: true }), square => {
        const ratio = 2 ** exponentOfRoot(square) / Math.sqrt(square)
        assert.ok(ratio > 2 ** -0.501 && ratio < 2 ** 0.501, `${ratio}`)
      })
    )
    assert.equal(rounded(-0.2, 1), 0)
    assert.ok(Object.is(rounded(-0.2, 1), 0), 'no negative zero')
  })

  it('are those of docs/reference/protocol.md for each weight, under rule adam', () => {
    const { rule } = latticeRecipe({ rule: createRule({ name: 'adam' }), digest }, { batch: 64 })
    const length = 1000
    const layout = { blocks: [{ name: 'w', length }] }
    const numbers = fc.array(fc.float({ min: -1, max: 1, noNaN: true }), { minLength: length, maxLength: length })
    fc.assert(
      fc.property(fc.array(numbers, { minLength: 1, maxLength: 4 }), gradients => {
        const state = rule.stateLayout(layout).blocks.map(block => new Float32Array(block.length))
        let now: RuleState = { parameters: [new Float32Array(length)], state }
        assert.deepEqual(rule.grid(now, 0), [Int8Array.of(exponentOfRoot((1e-4 * 64) / 16))])
        for (const [updates, scales] of gradients.entries()) {
          const [exponents] = rule.grid(now, updates)
          const sum = Float32Array.from(scales, (scale, i) => rounded(100 * scale ** 9, stepOf(exponents, i)))
          now = rule.step(now, [sum], 64, updates, 4)
        }
        const [, square, [, second], [contributors, , elements]] = now.state
        const mean = square.reduce((total, s) => total + s, 0) / length
        // No gradient was large enough.
        if (mean === 0) return assert.equal(rule.grid(now, gradients.length)[0].length, 1)
        const expected = square.map(s => (64 ** 2 / 4 / second) * (s + mean / 100))
        const divisor = contributors * (elements <= 64 ? 64 : elements <= 512 ? 8 : 1)
        const exponents = Int8Array.from(expected, V => exponentOfRoot(V / divisor))
        assert.deepEqual(rule.grid(now, gradients.length), [exponents])
      }),
      { numRuns: 20 }
    )
  })

  it('are the same for all weights of a block if Adam keeps no squares of the gradients themselves', () => {
    const length = 1000
    const layout = { blocks: [{ name: 'w', length }] }
    const options = [
      { name: 'adam', bits: 8 },
      { name: 'adamw', clip: 1 },
      { name: 'adamw', layerClip: 1 }
    ] as const
    for (const option of options) {
      const { rule } = latticeRecipe({ rule: createRule(option), digest }, { batch: 64 })
      const state = rule.stateLayout(layout).blocks.map(block => new Float32Array(block.length))
      const sum = Float32Array.from({ length }, (_, i) => i)
      const now = rule.step({ parameters: [new Float32Array(length)], state }, [sum], 64, 0, 4)
      assert.equal(rule.grid(now, 1)[0].length, 1, rule.description)
    }
  })

  for (const name of ruleNames) {
    it(`follow the gradients under rule ${name}`, () => {
      const { rule } = latticeRecipe({ rule: createRule({ name }), digest }, { batch: 64 })
      const blocks = { blocks: [{ name: 'w', length: 3 }] }
      let now = {
        parameters: [new Float32Array(3)],
        state: rule.stateLayout(blocks).blocks.map(({ length }) => new Float32Array(length))
      }
      for (let updates = 0; updates < 30; updates++) {
        const grid = rule.grid(now, updates)
        // Sums of ± 10 at every element, as integers.
        const sum = [Float32Array.from({ length: 3 }, (_, i) => rounded(updates % 2 ? 10 : -10, stepOf(grid[0], i)))]
        now = rule.step(now, sum, 64, updates, 4) as typeof now
      }
      // √(V/m)/8 = 10/√4/8.
      const step = stepOf(rule.grid(now, 30)[0], 0)
      assert.ok(step >= 0.25 && step <= 1, `${step}`)
    })
  }
})

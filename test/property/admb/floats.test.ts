/** Blocks of predictors: coding without loss, and rounding to few bits. */

import assert from 'node:assert/strict'
import fc from 'fast-check'
import { nextPredictor, type Recipe, startingPredictor } from '../../../src/admb/index.js'
import { decodeFloats, encodeFloats } from '../../../src/admb/wire/floats.js'
import { Random } from '../../../src/data/random.js'
import {
  createAveraging,
  createRule,
  digest,
  latticeRecipe,
  lazyAveraging,
  type RuleSpec,
  roundedRecipe,
  ruleNames
} from '../../../src/learning/index.js'
import { roundChanged } from '../../../src/numeric/block-kernels.js'
import { sumOf } from '../../../src/numeric/sums.js'

/** Bits of the fraction that rounding drops. */
const DROPPED = 13

interface Shape {
  readonly length: number
  readonly density: number
  /** Range of the exponents, and bits of the fractions. */
  readonly range: number
  readonly fraction: number
  readonly seed: number
}

const shapes: fc.Arbitrary<Shape> = fc.record({
  length: fc.constantFrom(0, 1, 2, 255, 256, 257, 1000, 5000),
  density: fc.constantFrom(0, 0.001, 0.02, 0.3, 0.99, 1),
  range: fc.constantFrom(1, 3, 20, 254),
  fraction: fc.constantFrom(0, 7, 10, 23),
  seed: fc.nat()
})

/** Any finite numbers, negative zeros and denormal ones included. */
function blockOf({ length, density, range, fraction, seed }: Shape): Float32Array {
  const random = new Random(seed)
  const first = random.below(255 - range)
  const bits = Int32Array.from({ length }, () => {
    if (random.uniform() >= density) return 0
    const low = random.below(2 ** fraction) << (23 - fraction)
    return (random.below(2) << 31) | ((first + random.below(range + 1)) << 23) | low
  })
  return new Float32Array(bits.buffer)
}

const bitsOf = (block: Float32Array) => new Int32Array(block.buffer, block.byteOffset, block.length)

describe('coded blocks of predictors', () => {
  it('are decoded to the same bits, up to their last byte', () => {
    fc.assert(
      fc.property(shapes, shape => {
        const block = blockOf(shape)
        const bytes = encodeFloats(block)
        assert.ok(bytes.length <= 4 * shape.length + shape.length / 256 + 2, `${bytes.length} bytes`)
        const padded = new Uint8Array(bytes.length + 2).fill(255)
        padded.set(bytes, 1)
        const decoded = new Float32Array(block.length).fill(Number.NaN)
        assert.equal(decodeFloats(padded, 1, padded.length, decoded), 1 + bytes.length)
        assert.deepEqual(bitsOf(decoded), bitsOf(block))
      }),
      { numRuns: 200 }
    )
  })

  it('take less than half of float32 numbers if their fractions have 10 bits and their exponents are close', () => {
    const shape = { length: 5000, density: 1, range: 3, fraction: 10, seed: 1 }
    assert.ok(encodeFloats(blockOf(shape)).length < 2 * shape.length)
  })

  it('are rejected if they are cut off, and are harmless if they are damaged', () => {
    fc.assert(
      fc.property(shapes, fc.nat(), fc.nat(255), (shape, position, byte) => {
        fc.pre(shape.length > 0)
        const bytes = encodeFloats(blockOf(shape))
        const into = new Float32Array(shape.length)
        assert.throws(() => decodeFloats(bytes, 0, bytes.length - 1, into), RangeError)
        const damaged = bytes.slice()
        damaged[position % bytes.length] = byte
        try {
          assert.ok(decodeFloats(damaged, 0, damaged.length, into) <= damaged.length)
        } catch (error) {
          assert.ok(error instanceof RangeError)
        }
      }),
      { numRuns: 300 }
    )
  })
})

describe('rounding of predictors', () => {
  it('leaves 10 bits of fractions, moves no number by more than one such step, and changes only what an update has changed', () => {
    fc.assert(
      fc.property(shapes, fc.nat(), (shape, updates) => {
        const exact = blockOf({ ...shape, range: Math.min(shape.range, 100) })
        const before = exact.map((value, i) => (i % 3 === 0 ? value : 0))
        const rounded = exact.slice()
        roundChanged(rounded, before, updates)
        const again = rounded.slice()
        roundChanged(again, before, updates + 1)
        for (let i = 0; i < exact.length; i++) {
          if (exact[i] === before[i]) assert.ok(Object.is(rounded[i], exact[i]))
          else {
            assert.equal(bitsOf(rounded)[i] & (2 ** DROPPED - 1), 0)
            assert.ok(Math.abs(bitsOf(rounded)[i] - bitsOf(exact)[i]) < 2 ** DROPPED)
            assert.equal(again[i], rounded[i])
          }
        }
      })
    )
  })

  it('keeps the expectation of a number over many updates', () => {
    for (const value of [1.0001, -3.7004, 1e-20, 12345.67]) {
      const block = new Float32Array(1)
      const steps = 20_000
      let sum = 0
      for (let updates = 0; updates < steps; updates++) {
        block[0] = value
        roundChanged(block, new Float32Array(1), updates)
        sum += block[0] / value - 1
      }
      assert.ok(Math.abs(sum / steps) < 2e-5, `${value} is off by ${sum / steps}`)
    }
  })

  it('adds up changes that are too small for a number of 10 bits', () => {
    const steps = 4000
    let now = Float32Array.of(1)
    for (let updates = 0; updates < steps; updates++) {
      const next = Float32Array.of(now[0] + 1e-4)
      roundChanged(next, now, updates)
      now = next
    }
    assert.ok(Math.abs(now[0] - 1.4) < 0.05, `${now[0]}`)
  })

  it('applies to long blocks that are neither counters nor codes', () => {
    const LENGTH = 3000
    const layout = { blocks: [{ name: 'w', length: LENGTH }] }
    const averaging = lazyAveraging(createAveraging({ name: 'tail' }))
    const specs: RuleSpec[] = [...ruleNames.map(name => ({ name })), { name: 'adagrad', l2: 0.1 }]
    specs.push({ name: 'adam', bits: 8 }, { name: 'momentum', bits: 8 })
    for (const spec of specs) {
      const plain = { rule: createRule(spec, layout), averaging, digest }
      const recipe: Recipe = roundedRecipe(latticeRecipe(plain, { batch: 4 }), layout)
      let predictor = startingPredictor([new Float32Array(LENGTH)], recipe)
      for (let updates = 0; updates < 3; updates++) {
        const sum = [Float32Array.from({ length: LENGTH }, (_, i) => ((i * 7 + updates) % 11) - 5)]
        predictor = nextPredictor(
          predictor,
          { sum: sumOf(sum), count: 7 },
          { origin: 'a', incarnation: 1, nonce: 0 },
          recipe
        )
      }
      const { blocks } = recipe.rule.stateLayout(layout)
      const exact = blocks.filter(({ isExact }) => isExact).map(({ name }) => name)
      const expected =
        'l2' in spec ? ['w.decayed'] : 'bits' in spec ? blocks.slice(0, -1 - Number(spec.name === 'adam')) : []
      assert.equal(exact.length, expected.length + 1, `${JSON.stringify(spec)}: ${exact}`)
      for (const block of [predictor.parameters[0], predictor.average[0]]) {
        assert.ok(bitsOf(block).every(bits => (bits & (2 ** DROPPED - 1)) === 0))
        assert.ok(block.some(value => value !== 0))
      }
      for (const [k, block] of predictor.state.entries()) {
        if (block.length !== LENGTH || blocks[k].isExact) continue
        assert.ok(
          bitsOf(block).every(bits => (bits & (2 ** DROPPED - 1)) === 0),
          blocks[k].name
        )
      }
    }
  })
})

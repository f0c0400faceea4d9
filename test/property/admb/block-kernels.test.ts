/** Kernels that pass over long blocks: the bits of the same loops in JavaScript, for any length. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { advance, type Recipe, startingPredictor } from '../../../src/admb/state/predictor.js'
import { digest, packedDigest } from '../../../src/learning/digest.js'
import { createAveraging } from '../../../src/learning/rules/averaging.js'
import { createRule, type RuleSpec } from '../../../src/learning/rules/index.js'
import { latticeRecipe, roundedRecipe } from '../../../src/learning/rules/lattice.js'
import { averagingRule } from '../../../src/learning/rules/local-steps.js'
import { MAX_OWN, MAX_ROUNDED } from '../../../src/numeric/block-code.js'
import {
  addNarrow,
  addTo,
  areAllIntegers,
  closeDense,
  countNonZero,
  exponentsOfRoots,
  mixInto,
  multiplied,
  narrowed,
  packedBits,
  roundChanged
} from '../../../src/numeric/block-kernels.js'
import { exponentOfRoot } from '../../../src/numeric/lattice.js'
import { sumOf } from '../../../src/numeric/sums.js'
import { randomFrom } from '../../support/learning/rows.js'

const lengths = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.constantFrom(6143, 6144, 6149, 30721, 40003))
const runs = { numRuns: 30 }

/** Numbers of very different sizes, some of them equal to 0 or −0. */
function numbers(length: number, random: () => number, decades = 6): Float32Array {
  return Float32Array.from({ length }, () => {
    const kind = random()
    if (kind < 0.1) return 0
    if (kind < 0.15) return -0
    return (random() - 0.5) * 10 ** Math.round(decades * (random() - 0.5))
  })
}

function exponentsFrom(length: number, random: () => number): Int8Array {
  return Int8Array.from({ length }, () => Math.floor(20 * random()) - 10)
}

const bits = (block: Float32Array) => new Int32Array(block.buffer, block.byteOffset, block.length)

function rounded(block: Float32Array, before: Float32Array, updates: number): void {
  const all = bits(block)
  const salt = Math.imul(updates + 1, 0x9e3779b1)
  for (let i = 0; i < all.length; i++) {
    const exact = all[i]
    if ((exact & 0x1fff) === 0 || block[i] === before[i]) continue
    const key = exact ^ salt
    const first = Math.imul(key ^ (key >>> 16), 0x85ebca6b)
    all[i] = (exact + (Math.imul(first ^ (first >>> 13), 0xc2b2ae35) >>> 19)) & ~0x1fff
  }
}

function closed(
  values: Float32Array,
  totals: Float32Array,
  residual: Float32Array,
  exponents: Int8Array,
  stale: number
): number[] {
  const excess: number[] = []
  for (let i = 0; i < values.length; i++) {
    const step = 2 ** exponents[exponents.length === 1 ? 0 : i]
    const value = values[i] + Math.max(-stale * step, Math.min(stale * step, residual[i]))
    let integer = Math.max(-MAX_ROUNDED, Math.min(MAX_ROUNDED, Math.round(value / step))) + 0
    if (Math.abs(totals[i] + integer) > MAX_OWN) integer = 0
    totals[i] += integer
    values[i] = integer * step
    residual[i] = value - values[i]
    if (Math.abs(value - integer * step) > step / 2) excess.push(i)
  }
  return excess
}

describe('kernels of long blocks', () => {
  const property = (check: (length: number, random: () => number) => void) =>
    fc.assert(
      fc.property(lengths, fc.integer(), (length, seed) => check(length, randomFrom(seed))),
      runs
    )

  it('round what has changed, and tell whether it is finite', () => {
    property((length, random) => {
      const before = numbers(length, random)
      const block = before.map((value, i) => (i % 3 === 0 ? value : value + 0.01 * (random() - 0.5)))
      if (random() < 0.3) block[Math.floor(random() * length)] = random() < 0.5 ? Number.NaN : Number.POSITIVE_INFINITY
      const [now, expected] = [block.slice(), block.slice()]
      rounded(expected, before, 7)
      const areFinite = roundChanged(now, before, 7)
      assert.deepEqual(bits(now), bits(expected))
      assert.equal(areFinite, expected.every(Number.isFinite))
    })
  })

  it('round segments to a grid, and report where more than half a step is left', () => {
    property((length, random) => {
      const exponents = random() < 0.3 ? Int8Array.of(-3) : exponentsFrom(length, random)
      const stale = random() < 0.5 ? 2 : Number.POSITIVE_INFINITY
      const now = [numbers(length, random, 14), numbers(length, random).map(value => Math.round(value * 1000))]
      now.push(numbers(length, random))
      for (const i of [0, length - 1]) now[1][i] = MAX_OWN
      const expected = now.map(block => block.slice())
      const excess = closed(expected[0], expected[1], expected[2], exponents, stale)
      const reported: (readonly [number, number])[] = []
      closeDense(now[0], now[1], now[2], exponents, stale, (from, to) => reported.push([from, to]))
      for (const [b, block] of now.entries()) assert.deepEqual(block, expected[b])
      assert.ok(excess.every(i => reported.some(([from, to]) => from <= i && i < to)))
      assert.ok(reported.every(([from, to]) => excess.some(i => from <= i && i < to)))
    })
  })

  it('compute sums, averages, grids and counts', () => {
    property((length, random) => {
      const [a, b] = [numbers(length, random), numbers(length, random)]
      const exponents = exponentsFrom(length, random)
      const integers = a.map(value => Math.round(value * 100))
      assert.deepEqual(
        multiplied(integers, exponents),
        integers.map((value, i) => (value === 0 ? 0 : value * 2 ** exponents[i]))
      )
      const sum = a.slice()
      addTo(sum, b)
      assert.deepEqual(
        sum,
        a.map((value, i) => value + b[i])
      )
      const mixed = a.slice()
      mixInto(mixed, b, 0.123)
      assert.deepEqual(
        mixed,
        a.map((value, i) => value + 0.123 * (b[i] - value))
      )
      const squares = a.map(value => value * value)
      const estimates = squares.map(square => 1.7 * (square + 1e-5))
      assert.deepEqual(
        exponentsOfRoots({ squares, factor: 1.7, floor: 1e-5 }, 0.3),
        Int8Array.from(estimates, estimate => exponentOfRoot(0.3 * estimate))
      )
      assert.equal(countNonZero(a, false), a.filter(value => value !== 0).length)
      assert.equal(countNonZero(a, true), a.filter(value => !Object.is(value, 0)).length)
      assert.ok(areAllIntegers(integers, 1e8))
      assert.equal(
        areAllIntegers(integers, 500),
        integers.every(value => Math.abs(value) <= 500)
      )
      for (const wrong of [0.5, Number.NaN, Number.NEGATIVE_INFINITY]) {
        const damaged = integers.slice()
        damaged[Math.floor(random() * length)] = wrong
        assert.ok(!areAllIntegers(damaged, 1e8))
      }
    })
  })

  it('copy integers in as few bytes as they need, and add them', () => {
    property((length, random) => {
      for (const [largest, Type] of [
        [127, Int8Array],
        [2 ** 15 - 1, Int16Array]
      ] as const) {
        const integers = Float32Array.from({ length }, () => Math.round((2 * random() - 1) * largest))
        integers[Math.floor(random() * length)] = random() < 0.5 ? largest : -largest
        const copy = narrowed(integers)
        assert.deepEqual(copy, Type.from(integers))
        const sum = integers.map(() => Math.round(1000 * random()))
        for (const factor of [1, -1]) {
          const expected = sum.map((value, i) => value + factor * integers[i])
          addNarrow(sum, copy as Int8Array | Int16Array, factor)
          assert.deepEqual(sum, expected)
        }
      }
      for (const wrong of [2 ** 15, -(2 ** 15), Number.NaN, Number.POSITIVE_INFINITY]) {
        const integers = new Float32Array(length)
        integers[Math.floor(random() * length)] = wrong
        assert.equal(narrowed(integers), undefined)
      }
    })
  })

  it('pack numbers with few bits without loss, so that their digest depends on each bit', () => {
    property((length, random) => {
      const block = numbers(length, random)
      const packed = (of: Float32Array) => {
        const all: Uint8Array[] = []
        packedBits(of, (bytes, isPacked) => all.push(Uint8Array.of(Number(isPacked)), bytes.slice()))
        return Buffer.concat(all)
      }
      roundChanged(block, new Float32Array(length), 1)
      const text = packed(block)
      assert.equal(text[0], 1)
      assert.ok(text.length <= 2.4 * length + 60)
      const i = Math.floor(random() * length)
      const others = [...Array(32).keys()].map(bit => {
        const other = block.slice()
        bits(other)[i] ^= 1 << bit
        return other
      })
      const texts = new Set(others.map(other => packed(other).toString('latin1')))
      assert.equal(texts.add(text.toString('latin1')).size, 33)
      if (length > 100) return
      const digests = [block, ...others].map(one => packedDigest([[one], []]))
      assert.equal(new Set(digests).size, 33)
      assert.notEqual(digests[0], packedDigest([[], [block]]))
      assert.notEqual(digests[0], digest([[block], []]))
    })
  })
})

describe('updates of long blocks, section by section', () => {
  const rules: RuleSpec[] = [{ name: 'adam' }, { name: 'adamw', decay: 0.1 }, { name: 'adamw', decay: 0.1, clip: 0.5 }]
  const layout = {
    blocks: [
      { name: 'a', length: 13_000, vectors: [[5, 9000]] as const },
      { name: 'b', length: 7 },
      { name: 'c', length: 6144 }
    ]
  }

  for (const average of ['tail', 'uniform', 'none'] as const) {
    it(`have the bits of updates of whole blocks, with average ${average}`, () => {
      for (const spec of rules)
        for (const momentum of [undefined, 0, 0.9])
          for (const isLattice of [false, true]) {
            const random = randomFrom(5)
            const own = createRule(spec, layout)
            const rule = momentum === undefined ? own : averagingRule(own, { batch: 8, steps: 4, momentum })
            const plain = { rule, averaging: createAveraging({ name: average }), digest }
            const recipe: Recipe = isLattice ? roundedRecipe(latticeRecipe(plain, { batch: 8 }), layout) : plain
            const whole = { ...recipe, rule: { ...recipe.rule, begin: undefined } }
            const initial = layout.blocks.map(({ length }) => numbers(length, random, 2))
            let [now, expected]: ReturnType<typeof advance>[] = [recipe, whole].map(one =>
              startingPredictor(initial, one)
            )
            for (let updates = 0; updates < 3; updates++) {
              const sum = layout.blocks.map(({ length }) =>
                numbers(length, random, 2).map(value => Math.round(20 * value))
              )
              const batch = { sum: sumOf(sum), count: 9, contributorCount: 2 }
              now = advance(now, batch, updates, recipe)
              expected = advance(expected, batch, updates, whole)
              for (const group of ['parameters', 'average', 'state'] as const)
                assert.deepEqual(
                  now[group],
                  expected[group],
                  `${spec.name} ${momentum} ${isLattice} ${group} ${updates}`
                )
            }
          }
    })
  }
})

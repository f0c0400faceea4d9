import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type AveragingSpec, type Blocks, createAveraging, lazyAveraging } from '../../../src/learning/index.js'
import { randomFrom } from '../../support/learning/rows.js'

const averages = fc.oneof(
  fc.constant<AveragingSpec>({ name: 'uniform' }),
  fc.record({ name: fc.constant('tail' as const), decay: fc.constantFrom(0, 2.5, 15, 127) }),
  fc.record({ name: fc.constant('exponential' as const), halfLife: fc.constantFrom(1, 20, 1000) })
)

const ELEMENTS = 6
/** Rounding errors of float32 numbers add up over thousands of updates. */
const TOLERANCE = 1e-5

describe('a lazy average', () => {
  it('is the average by its definition, over long sequences', () => {
    fc.assert(
      fc.property(averages, fc.nat(), fc.integer({ min: 1, max: 5000 }), (spec, seed, length) => {
        const random = randomFrom(seed)
        const plain = createAveraging(spec)
        const lazy = lazyAveraging(plain)
        const w = new Float32Array(ELEMENTS)
        let contained: Blocks = lazy.contain?.([w], [w]) ?? []
        const expected = new Float64Array(ELEMENTS)
        const largest = new Float64Array(ELEMENTS)
        for (let updates = 0; updates < length; updates++) {
          const before = w.slice()
          // Element i changes in about one of i² updates.
          for (let i = 0; i < ELEMENTS; i++) if (random() * i * i < 1) w[i] += random() - 0.5
          contained = lazy.average(contained, [w], updates, [before])
          const weight = plain.weight(updates)
          for (let i = 0; i < ELEMENTS; i++) {
            expected[i] += weight * (w[i] - expected[i])
            largest[i] = Math.max(largest[i], Math.abs(w[i]))
          }
        }
        const [average] = lazy.read?.(contained, [w]) ?? []
        for (let i = 0; i < ELEMENTS; i++) {
          const error = Math.abs(average[i] - expected[i])
          assert.ok(error <= TOLERANCE * largest[i], `element ${i}: ${average[i]} instead of ${expected[i]}`)
        }
      })
    )
  })

  it('continues from any average', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.float({ noNaN: true, min: -9, max: 9 }), fc.float({ noNaN: true, min: -9, max: 9 }))),
        pairs => {
          const parameters = [Float32Array.from(pairs, ([w]) => w)]
          const average = [Float32Array.from(pairs, ([, mean]) => mean)]
          const { contain, read } = lazyAveraging(createAveraging())
          const [again] = read?.(contain?.(average, parameters) ?? [], parameters) ?? []
          for (const [i, mean] of average[0].entries()) assert.ok(Math.abs(again[i] - mean) <= 4e-6)
        }
      )
    )
  })
})

/** One pass that scores rows and adds their gradients gives what the two passes give, whatever the rows are. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  createLearner,
  ExampleError,
  type Examples,
  type Learner,
  ProgressiveMetrics
} from '../../../src/learning/index.js'
import type { ModelOptions } from '../../../src/learning/models/model.js'

const DIMENSION = 300

const value = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(1, -1, 0.25) },
  { weight: 4, arbitrary: fc.float({ noNaN: true, min: -8, max: 8 }) },
  { weight: 1, arbitrary: fc.constantFrom(0, -0, 3000) }
)
const row = fc.record({
  label: fc.constantFrom(0, 1),
  features: fc.array(fc.tuple(fc.nat(DIMENSION - 1), value), { maxLength: 12 })
})
const odd = fc.constantFrom(
  { label: 2.5, features: [] },
  { label: 1, features: [[DIMENSION, 1]] },
  { label: 1, features: [[-1, 1]] },
  { label: 0, features: [[3, 3e38]] },
  { label: Number.NaN, features: [] }
) as fc.Arbitrary<{ label: number; features: [number, number][] }>
const rows = fc.array(fc.oneof({ weight: 60, arbitrary: row }, { weight: 1, arbitrary: odd }), {
  minLength: 1,
  maxLength: 90
})

const models = fc.oneof(
  fc.constantFrom<Partial<ModelOptions> & Pick<ModelOptions, 'model'>>(
    { model: 'logistic' },
    { model: 'hinge' },
    { model: 'linear' },
    { model: 'linear', targetScale: { mean: 190.5, deviation: 77 } }
  ),
  fc.constantFrom<Partial<ModelOptions> & Pick<ModelOptions, 'model'>>(
    { model: 'logistic', l2: 0.25 },
    { model: 'logistic', clip: 0.5 },
    { model: 'hinge', classWeights: [1, 3] }
  )
)

function examplesOf(
  given: readonly { label: number; features: [number, number][] }[],
  weights?: Float32Array
): Examples {
  const offsets = [0]
  for (const { features } of given) offsets.push((offsets.at(-1) as number) + features.length)
  const entries = given.flatMap(({ features }) => features)
  return {
    size: given.length,
    labels: Float64Array.from(given, ({ label }) => label),
    offsets: Int32Array.from(offsets),
    indices: Int32Array.from(entries, ([index]) => index),
    values: Float32Array.from(entries, ([, number]) => number),
    weights
  }
}

function blockOf(seed: number, scale: number): Float32Array {
  return Float32Array.from({ length: DIMENSION }, (_, i) => scale * Math.sin(seed + 7 * i))
}

/** What one way of learning rows leaves behind. */
function outcomeOf(learner: Learner, learn: (sum: Float32Array, score: { loss: number; hits: number }) => void) {
  const metrics = new ProgressiveMetrics(learner.outcomeKind as NonNullable<Learner['outcomeKind']>)
  const score = { loss: 0, hits: 0, surplus: 0, outcomes: metrics }
  const sum = blockOf(5, 0.01)
  let failure: string | undefined
  try {
    learn(sum, score)
  } catch (error) {
    assert.ok(error instanceof ExampleError)
    failure = `${error.row}: ${error.message}`
  }
  const { loss, hits, surplus } = score
  return { loss, rest: { sum, hits, surplus, failure, figures: metrics.metrics(1), inputs: metrics.inputs } }
}

describe('scoreAndAdd', () => {
  it('has the bits of addGradient and score, and reports the same rows', () => {
    fc.assert(
      fc.property(
        models,
        rows,
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 0, max: 40 }),
        fc.constantFrom(0.1, 3, 400),
        fc.boolean(),
        (model, block, copies, from, scale, isWeighted) => {
          const given = Array.from({ length: copies }, () => block).flat()
          const weights = isWeighted ? Float32Array.from(given, (_, i) => (i % 3) / 2) : undefined
          const examples = examplesOf(given, weights)
          const to = given.length
          const start = Math.min(from, to)
          const options = { dimension: DIMENSION, ...model } as ModelOptions
          const [one, other] = [createLearner(options), createLearner(options)]
          const [at, served] = [[blockOf(1, scale)], [blockOf(2, scale)]]
          const fused = outcomeOf(one, (sum, score) => one.scoreAndAdd?.(at, served, examples, start, to, [sum], score))
          const apart = outcomeOf(other, (sum, score) => {
            let end = to
            try {
              other.addGradient(at, examples, start, to, [sum])
            } catch (error) {
              end = (error as ExampleError).row
              throw error
            } finally {
              other.score(served, examples, start, end, score)
            }
          })
          // The penalty of rows before one that does not fit is not added in one pass.
          if (fused.rest.failure !== undefined && options.l2 !== undefined) return
          assert.deepEqual(fused.rest, apart.rest)
          // One logarithm is taken of the product of several rows, in which a tiny loss is rounded to 0.
          const tolerance = 1e-12 * Math.abs(apart.loss) + 1e-15 * (to - start)
          assert.ok(Math.abs(fused.loss - apart.loss) <= tolerance, `${fused.loss} ${apart.loss}`)
        }
      ),
      { numRuns: 400 }
    )
  })

  it('adds rows with more features than it holds at once, and more rows than a call', () => {
    const long = Array.from({ length: 40_000 }, (_, i): [number, number] => [i % DIMENSION, 0.001])
    const given = Array.from({ length: 700 }, (_, i) => ({
      label: i % 2,
      features: i % 300 === 200 ? long : ([[i % DIMENSION, 1]] as [number, number][])
    }))
    const examples = examplesOf(given)
    const learner = createLearner({ model: 'logistic', dimension: DIMENSION })
    const [at, served] = [[blockOf(1, 1)], [blockOf(2, 1)]]
    const fused = outcomeOf(learner, (sum, score) =>
      learner.scoreAndAdd?.(at, served, examples, 0, given.length, [sum], score)
    )
    const apart = outcomeOf(learner, (sum, score) => {
      learner.addGradient(at, examples, 0, given.length, [sum])
      learner.score(served, examples, 0, given.length, score)
    })
    assert.deepEqual(fused.rest, apart.rest)
  })
})

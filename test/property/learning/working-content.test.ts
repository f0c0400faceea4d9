/** Updates in place, of the elements with a gradient, have the bits of a rule and an average that step whole blocks. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  type AveragingSpec,
  averagingFor,
  createAveraging,
  createRule,
  type RuleSpec,
  ruleFor,
  SerialTrainer
} from '../../../src/learning/index.js'
import { createLearner } from '../../../src/learning/models/linear.js'
import { examplesOf, randomRows } from '../../support/learning/rows.js'
import { share } from '../../support/runs.js'

/** Blocks of at least 2¹⁴ elements are stepped in part. */
const dimension = 2 ** 14

const rules: readonly RuleSpec[] = [
  { name: 'adagrad' },
  { name: 'adagrad', forget: 0.1, maxLossDecrease: 0.1, l2: 0.01 },
  { name: 'adagrad', forget: 0.1, maxForget: 0.5, l2: 0.01 },
  { name: 'adagrad', radius: 2 },
  { name: 'momentum' },
  { name: 'adam' },
  { name: 'mirror-descent' }
]

const options = fc.record({
  model: fc.constantFrom('logistic', 'linear', 'softmax'),
  rule: fc.constantFrom(...rules),
  averaging: fc.constantFrom({ name: 'tail' }, { name: 'exponential', halfLife: 3 }, { name: 'none' }),
  batch: fc.integer({ min: 2, max: 8 }),
  predictWith: fc.constantFrom('average', 'current'),
  /** Batches of 2,000 features are not sparse. */
  features: fc.constantFrom(1, 5, 2000),
  /** Whether the model grows with the data. */
  grows: fc.boolean(),
  resumes: fc.boolean(),
  seed: fc.nat()
})

describe('a content that is updated in place', () => {
  it('has the bits of one that is not', () => {
    fc.assert(
      fc.property(options, ({ model, rule, averaging, batch, predictWith, features, grows, resumes, seed }) => {
        const classes = model === 'softmax' ? 3 : model === 'linear' ? 0 : 2
        const rows = randomRows({ count: 5 * batch, dimension, features, classes, seed })
        // So that models that grow have this dimension too.
        rows.push({ label: 0, features: [[dimension - 1, 0.5]] }, ...rows.slice(0, batch - 1))
        const shape = { model, dimension, ...(classes > 2 && { classes }) } as const
        const trainerOf = () =>
          new SerialTrainer({ ...shape, rule, averaging, batch, predictWith, ...(grows && { dimension: undefined }) })
        let trainer = trainerOf()
        const learner = createLearner(shape)
        const step = createRule(ruleFor(model, rule))
        const average = createAveraging(averagingFor(model, averaging as AveragingSpec))
        let expected = {
          parameters: learner.initial(),
          average: learner.initial(),
          state: step.stateLayout(learner.layout).blocks.map(({ length }) => new Float32Array(length))
        }
        const score = { inputs: 0, loss: 0, hits: 0 }
        for (let from = 0, updates = 0; from < rows.length; from += batch, updates++) {
          const examples = examplesOf(rows.slice(from, from + batch))
          trainer.learn(examples)
          const sum = learner.layout.blocks.map(({ length }) => new Float32Array(length))
          learner.score(predictWith === 'average' ? expected.average : expected.parameters, examples, 0, batch, score)
          learner.addGradient(expected.parameters, examples, 0, batch, sum)
          const next = step.step(expected, sum, batch, updates)
          expected = {
            ...next,
            average: average.average(
              expected.average,
              next.parameters,
              updates,
              expected.parameters,
              step.minWeight?.(next.state)
            )
          } as typeof expected
          if (!resumes || grows || updates !== 2) continue
          const saved = trainer.finish()
          trainer = trainerOf()
          trainer.resume(saved)
          score.loss = 0
        }
        const found = trainer.finish()
        for (const kind of ['parameters', 'average', 'state'] as const) assert.deepEqual(found[kind], expected[kind])
        const { averageLoss = 0, weight } = trainer.report()
        assert.ok(Math.abs(averageLoss * weight - score.loss) <= 1e-9 * Math.abs(score.loss))
      }),
      { numRuns: share(150) }
    )
  })
})

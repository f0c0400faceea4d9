/** Reactions to drift: when they happen, what they do, and that all engines and replays agree on them. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { nextPredictor, startingPredictor } from '../../../src/admb/predictor.js'
import {
  birthOf,
  DriftVote,
  driftActions,
  reactingAveraging,
  rejuvenated
} from '../../../src/learner/drift/reaction.js'
import {
  addedClasses,
  BatchEngine,
  createAveraging,
  createLearner,
  SerialTrainer,
  type Trained
} from '../../../src/learner/index.js'
import { createReactingRule, type RuleSpec, ruleFor } from '../../../src/learner/rules/index.js'
import { type LearningSpec, learningParts, linearParts } from '../../../src/task/learning-spec.js'
import { examplesOf, type Row, randomFrom } from '../../support/learner/rows.js'

const action = fc.constantFrom(...driftActions)
const seed = fc.nat(1000)

/** Rows whose labels turn into their opposites every `period` rows. */
function flipping(seed: number, count: number, period: number): Row[] {
  const random = randomFrom(seed)
  return Array.from({ length: count }, (_, row) => {
    const features = Array.from({ length: 4 }, (_, k) => [k, 2 * random() - 1] as const)
    const sign = Math.floor(row / period) % 2 === 0 ? 1 : -1
    return { label: Number(sign * (features[0][1] + features[1][1]) > 0), features }
  })
}

const spec = (
  onDrift: 'raise-step' | 'forget',
  rule: RuleSpec = { name: 'adagrad' }
): LearningSpec & { network?: undefined } => ({
  model: 'logistic',
  dimension: 4,
  rule,
  averaging: { name: 'tail' },
  batch: 8,
  onDrift,
  features: { constant: false, scale: 'none' }
})

describe('a reaction to drift', () => {
  it('happens at the first update of whose gradients more than half vote, and at no other', () =>
    fc.assert(
      fc.property(
        action,
        fc.array(fc.tuple(fc.integer({ min: 1, max: 20 }), fc.nat(20)), { maxLength: 30 }),
        (onDrift, batches) => {
          const { learner, recipe } = linearParts(spec(onDrift))
          const contributor = { origin: 'a', incarnation: 1, nonce: 0 }
          let predictor = startingPredictor(learner.initial(), recipe)
          let birth = 0
          let wasDrifting = false
          for (const [updates, [count, drawn]] of batches.entries()) {
            const votes = Math.min(drawn, count)
            const sum = [Float32Array.of(count, -count, 0.5, 0), Float32Array.of(votes, 0, 0)]
            const isDrifting = 2 * votes > count
            if (isDrifting && !wasDrifting) birth = rejuvenated(birth, updates, onDrift)
            wasDrifting = isDrifting
            const next = nextPredictor(predictor, { sum, count }, contributor, recipe)
            // A replay on the same parent has the same bits.
            assert.equal(nextPredictor(predictor, { sum, count }, contributor, recipe).id.digest, next.id.digest)
            predictor = next
            assert.equal(birthOf(predictor.parameters[1]), birth)
            assert.equal(predictor.parameters[1][0], Number(isDrifting))
            const { parameters, average } = predictor
            if (birth === updates) assert.deepEqual(recipe.averaging.read?.(average, parameters)[0], parameters[0])
          }
        }
      )
    ))

  it('is the same in the fused loops and in the general engine, however the rows are divided', () => {
    let reactions = 0
    fc.assert(
      fc.property(action, seed, fc.integer({ min: 1, max: 500 }), (onDrift, seed, size) => {
        const rows = flipping(seed, 6000, 2000)
        const options = { model: 'logistic', dimension: 4, onDrift } as const
        const run = (trainer: SerialTrainer, size: number): Trained => {
          trainer.watchDrift('adwin')
          for (let from = 0; from < rows.length; from += size) trainer.learn(examplesOf(rows.slice(from, from + size)))
          return trainer.finish()
        }
        const fused = run(new SerialTrainer(options), rows.length)
        assert.deepEqual(run(new SerialTrainer(options), size), fused)
        const engine = new BatchEngine({
          learnerFor: dimension => createLearner({ model: 'logistic', dimension, reacts: true }),
          dimension: 4,
          dimensionLimit: 4,
          rule: createReactingRule(ruleFor('logistic'), onDrift),
          averaging: reactingAveraging(createAveraging()),
          batch: 1,
          predictWith: 'average'
        })
        const general = run(new SerialTrainer({ engine, classifies: true, reacts: true }), size)
        assert.deepEqual(general.parameters[1], fused.parameters[1])
        reactions += Number(birthOf(fused.parameters[1]) > 0)
        for (const kind of ['parameters', 'average', 'state'] as const) {
          for (const [i, value] of general[kind][0].entries()) {
            assert.ok(Math.abs(fused[kind][0][i] - value) <= 1e-3 * Math.max(1, Math.abs(value)), kind)
          }
        }
      }),
      { numRuns: 10 }
    )
    assert.ok(reactions >= 9, `${reactions}`)
  })

  it('keeps the classes that are added, with the same result in the fused loop, the general engine and a continued run', () => {
    // Two of three classes are exchanged at row 3000; the third is added with its first row.
    const random = randomFrom(5)
    const rows = Array.from({ length: 6000 }, (_, row): Row => {
      const shown = Math.floor(3 * random())
      return {
        label: shown === 2 || row < 3000 ? shown : 1 - shown,
        features: [
          [shown, 1],
          [3, random()]
        ]
      }
    })
    const options = { model: 'softmax', classes: 4, named: ['a', 'b'], dimension: 4, onDrift: 'forget' } as const
    const start = (more: object, from?: Trained) => {
      const trainer = new SerialTrainer({ ...options, ...more })
      if (from === undefined) assert.equal(trainer.addClass('c'), 2)
      else trainer.resume(from)
      trainer.watchDrift('adwin')
      return trainer
    }
    const fused = start({})
    fused.learn(examplesOf(rows))
    // With a radius, the general engine learns.
    const general = start({ rule: { name: 'adagrad', radius: 1e30 } })
    for (let from = 0; from < rows.length; from += 97) general.learn(examplesOf(rows.slice(from, from + 97)))
    const [a, b] = [fused.finish(), general.finish()]
    for (const { parameters, average } of [a, b]) {
      for (const [weights, table, drift] of [parameters, average]) {
        assert.equal(weights.length, 16)
        assert.deepEqual(addedClasses(table), ['c'])
        assert.ok(birthOf(drift) > 3000)
      }
    }
    assert.deepEqual(a.parameters[2], b.parameters[2])
    for (const [i, weight] of a.average[0].entries()) assert.ok(Math.abs(weight - b.average[0][i]) < 1e-3)
    // A run that continues knows class and age.
    for (const more of [{}, { rule: { name: 'adagrad', radius: 1e30 } }]) {
      const again = start(more, more.rule ? b : a)
      again.learn(examplesOf(rows.slice(3000)))
      assert.ok((again.report().accuracy ?? 0) > 0.95)
      const { parameters } = again.finish()
      assert.deepEqual([addedClasses(parameters[1]), birthOf(parameters[2])], [['c'], birthOf(a.parameters[2])])
    }
  })

  it('learns a changed concept sooner, at any batch size and with every rule that has an age', () => {
    for (const batch of [1, 64]) {
      for (const rule of [{ name: 'adagrad', maxForget: 0 }, { name: 'mirror-descent' }] as const) {
        const accuracy = (onDrift?: 'raise-step' | 'forget') => {
          const trainer = new SerialTrainer({ model: 'logistic', dimension: 4, rule, batch, onDrift })
          trainer.watchDrift('adwin')
          trainer.learn(examplesOf(flipping(7, 40_000, 10_000)))
          return trainer.report().accuracy ?? 0
        }
        const [plain, raised, forgot] = [accuracy(), accuracy('raise-step'), accuracy('forget')]
        assert.ok(raised > plain + 0.01 && forgot > raised, `${rule.name}, ${batch}: ${plain}, ${raised}, ${forgot}`)
      }
    }
  })

  it('is refused for rules whose steps do not get shorter', async () => {
    for (const name of ['adam', 'momentum', 'dual-averaging'] as const) {
      assert.throws(() => new SerialTrainer({ model: 'logistic', rule: { name }, onDrift: 'forget' }), {
        name: 'OptionError',
        message: new RegExp(`^rule ${name} does not shorten its steps with time`)
      })
      await assert.rejects(async () => learningParts(spec('forget', { name })), { name: 'OptionError' })
    }
  })

  it('is voted for by the thousand inputs after an alarm', () => {
    const vote = new DriftVote()
    const drift = (alarms: number) => ({ test: 'adwin', alarms, recent: [] }) as const
    assert.equal(vote.isVoting(drift(0), 500), false)
    assert.equal(vote.isVoting(drift(1), 600), true)
    assert.equal(vote.isVoting(drift(1), 1599), true)
    assert.equal(vote.isVoting(drift(1), 1600), false)
    assert.equal(vote.isVoting(drift(2), 1700), true)
  })
})

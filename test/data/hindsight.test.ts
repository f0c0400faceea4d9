/**
 * The hindsight optimum of real data. The data is outside the repository (`../shared/data` beside it); if it is missing,
 * the tests are skipped with a message. Not part of `npm test`.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { collect, openStream } from '../../src/data/index.js'
import { createLearner, hindsightOptimum, SerialTrainer } from '../../src/learning/index.js'

const root = resolve(import.meta.dirname, '../../..', '../shared/data')

describe('the hindsight optimum of real data', () => {
  before(function () {
    if (existsSync(root)) return
    console.log('      skipped: no ../shared/data beside the repository')
    this.skip()
  })

  it('a9a: has a zero gradient in the learner, and a loss 300 nats below one pass of the default learner', async () => {
    const data = resolve(root, 'a9a.libsvm.gz')
    const examples = await collect(await openStream({ data, constant: true }), Number.POSITIVE_INFINITY)
    const { averageLoss, gradientNorm, outcome, weights } = hindsightOptimum('logistic', examples)
    assert.equal(outcome, 'minimum')
    assert.ok(gradientNorm <= 1e-8)
    const learner = createLearner({ model: 'logistic', dimension: weights.length })
    const sum = learner.initial()
    learner.addGradient([Float32Array.from(weights)], examples, 0, examples.size, sum)
    assert.ok(Math.hypot(...sum[0]) / examples.size < 1e-6)
    const trainer = new SerialTrainer({ model: 'logistic' })
    trainer.learn(examples)
    const regret = examples.size * ((trainer.report().averageLoss as number) - averageLoss)
    assert.ok(regret > 250 && regret < 320, `${regret}`)
  })

  it('agaricus: reports that the classes are separable', async () => {
    const data = resolve(root, 'agaricus.train.libsvm.gz')
    const examples = await collect(await openStream({ data, constant: true }), Number.POSITIVE_INFINITY)
    const { averageLoss, outcome } = hindsightOptimum('logistic', examples)
    assert.equal(outcome, 'separable')
    assert.ok(averageLoss < 1e-6)
  })
})

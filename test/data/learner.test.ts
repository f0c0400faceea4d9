/**
 * Results of one pass of the default learner on real data. The data is outside the repository (`../shared/data`
 * beside it); if it is missing, the tests are skipped with a message. Not part of `npm test`.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { openStream, type StreamOptions } from '../../src/data/index.js'
import { type SerialOptions, SerialTrainer } from '../../src/learning/engines/serial.js'
import { createLearner } from '../../src/learning/models/linear.js'

const root = resolve(import.meta.dirname, '../../..', '../shared/data')

async function train(learning: Omit<SerialOptions, 'dimension'>, reading: StreamOptions) {
  const stream = await openStream({ constant: true, inferLabel: true, ...reading, data: resolve(root, reading.data) })
  const trainer = new SerialTrainer({ ...learning, dimension: stream.dimension })
  for await (const examples of stream) trainer.learn(examples)
  return { report: trainer.report(), trained: trainer.finish() }
}

function below(value: number | undefined, limit: number): void {
  assert.ok(value !== undefined && value <= limit, `${value} should be at most ${limit}`)
}

describe('the default learner on real data', () => {
  before(function () {
    if (existsSync(root)) return
    console.log('      skipped: no ../shared/data beside the repository')
    this.skip()
  })

  for (const [batch, loss] of [
    [1, 0.332],
    [32, 0.332],
    [512, 0.354]
  ]) {
    it(`a9a, one pass, b = ${batch}: progressive loss`, async () => {
      const { report } = await train({ model: 'logistic', batch }, { data: 'a9a.libsvm.gz' })
      assert.equal(report.inputs, 32_561)
      below(report.averageLoss, loss)
    })
  }

  it('agaricus, one pass: progressive loss', async () => {
    const { report } = await train({ model: 'logistic' }, { data: 'agaricus.train.libsvm.gz' })
    below(report.averageLoss, 0.03)
  })

  it('elec2 with drift, served by the newest predictor: progressive accuracy', async () => {
    const reading = { data: 'elec2.csv.gz', label: 'class', scale: 'standard' } as const
    const { report } = await train({ model: 'logistic', predictWith: 'current' }, reading)
    assert.ok((report.accuracy ?? 0) > 0.8, `${report.accuracy}`)
  })

  for (const batch of [1, 512]) {
    it(`MNIST, three passes, b = ${batch}: test accuracy`, async () => {
      const reading = { data: 'mnist/train-images-idx3-ubyte.gz', passes: 3 }
      const { report, trained } = await train({ model: 'softmax', classes: 10, batch }, reading)
      assert.equal(report.inputs, 180_000)
      const learner = createLearner({ model: 'softmax', classes: 10, dimension: trained.dimension })
      const into = { loss: 0, hits: 0 }
      let rows = 0
      const test = resolve(root, 'mnist/t10k-images-idx3-ubyte.gz')
      for await (const examples of await openStream({ data: test, constant: true })) {
        learner.score(trained.average, examples, 0, examples.size, into)
        rows += examples.size
      }
      assert.equal(rows, 10_000)
      assert.ok(into.hits / rows >= 0.92, `${into.hits} of ${rows}`)
    })
  }
})

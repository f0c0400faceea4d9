/** The state directory after training, which never contains a damaged predictor. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadStored } from '../../../src/cli/training/stored.js'
import { layerPlace } from '../../../src/cli/training/train-inputs.js'
import { endedEarly, keep, openForTraining } from '../../../src/cli/training/trained-store.js'
import { networkModel, parseModel } from '../../../src/l2l/index.js'
import type { SerialReport } from '../../../src/learning/index.js'
import type { LearningSpec } from '../../../src/peer/index.js'
import type { Store } from '../../../src/storage/index.js'
import { learningParts } from '../../../src/task/learning-parts.js'
import type { NetworkLearningSpec } from '../../../src/task/learning-spec.js'
import { TrainingJob } from '../../../src/task/training-job.js'
import { randomRows } from '../../support/l2l/dense-model.js'

const spec: LearningSpec = {
  model: 'logistic',
  dimension: 2,
  rule: { name: 'adagrad' },
  averaging: { name: 'tail' },
  batch: 1,
  features: { constant: false, scale: 'none' }
}
const trained = (weight: number, updates: number) => ({
  dimension: 2,
  parameters: [Float32Array.of(weight, 1)],
  average: [Float32Array.of(1, 1)],
  state: [Float32Array.of(1, 1)],
  updates
})
const report: SerialReport = { inputs: 5, weight: 5, unlabelled: 0, updates: 5, averageLoss: 0.5, accuracy: 1 }

describe('a state directory', () => {
  let dir: string
  let store: Store
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'admb-kept-'))
    store = (await openForTraining(join(dir, 'state'))).store
  })
  afterEach(async () => {
    await store.close()
    await rm(dir, { recursive: true, force: true })
  })

  it('keeps its predictor if the next one is not finite', async () => {
    const { digest } = await keep(store, spec, trained(2, 5), report, {})
    for (const broken of [Number.NaN, Number.POSITIVE_INFINITY]) {
      await assert.rejects(keep(store, spec, trained(broken, 6), report, {}), {
        name: 'DivergenceError',
        message: /holds numbers that are not finite, and is not stored: /
      })
    }
    await store.close()
    const { predictor } = await loadStored(join(dir, 'state'), {})
    assert.equal(predictor.id.digest, digest)
    assert.deepEqual([...predictor.parameters[0]], [2, 1])
  })

  it('gives the average of an unfinished run back to the last bit', async () => {
    const average = [Float32Array.of(1e-5 / 3, -2e-7)]
    const run = { ...trained(0.7, 5), average }
    await keep(store, spec, run, report, { unfinished: { stream: 's', rows: 5 } })
    await store.close()
    const again = await openForTraining(join(dir, 'state'))
    store = again.store
    assert.deepEqual(again.earlier?.trained.average, average)
  })

  for (const [options, peers] of [
    [{ batchMax: 64 }, 'that choose b themselves'],
    [{ influence: 'bounded' }, 'with bounded influence'],
    [{ localSteps: 2 }, 'with local steps']
  ] as const)
    it(`of peers ${peers} is not continued by one process`, async () => {
      await keep(store, { ...spec, batch: 4, ...options }, trained(2, 5), report, {})
      await store.close()
      await assert.rejects(openForTraining(join(dir, 'state')), {
        name: 'UsageError',
        message: `${join(dir, 'state')} is of peers ${peers}: continue it with 'admb peer --dir ${join(dir, 'state')}'`
      })
    })

  it('of peers with integer sums is continued, and keeps what the grid follows from', async () => {
    const grid = [Float32Array.of(5, 130, 2)]
    const ofPeers: LearningSpec = { ...spec, sums: 'lattice' }
    await keep(store, ofPeers, trained(2, 5), report, {}, { grid })
    await store.close()
    const again = await openForTraining(join(dir, 'state'))
    store = again.store
    assert.deepEqual(again.earlier?.trained.state, trained(2, 5).state)
    assert.throws(() => layerPlace({ store: 'disk' }, 'state', again.earlier), /of peers with integer sums/)
    await keep(store, ofPeers, trained(3, 6), report, {}, again.earlier)
    await store.close()
    const { predictor } = await loadStored(join(dir, 'state'), {})
    assert.deepEqual(predictor.state, [...trained(3, 6).state, ...grid])
    assert.equal(predictor.id.updates, 6)
  })

  it('evaluates a growing model with the layers that it had', async () => {
    const dense = { kind: 'dense', units: 4, activation: 'tanh' }
    const networkOf = (layers: object[]): NetworkLearningSpec => ({
      model: 'network',
      network: {
        layers: parseModel({ layers }, 'test'),
        sample: { kind: 'features', shape: [3] },
        target: { kind: 'class', classes: 3 }
      },
      dimension: 3,
      classes: 3,
      rule: { name: 'adam', step: 0.05 },
      averaging: { name: 'tail' },
      batch: 8,
      features: { constant: false, scale: 'none' }
    })
    const growing = networkOf([dense, { ...dense, from: 6 }, { ...dense, from: 9 }])
    const rows = randomRows(networkModel(growing.network), 48)
    const { trainer } = await TrainingJob.start({ spec: growing, execution: { backend: 'cpu' } })
    trainer.learn(rows)
    await keep(store, growing, trainer.finish(), trainer.report(), {})
    await store.close()
    const { learner, predictor } = await loadStored(join(dir, 'state'), { backend: 'cpu' })
    assert.equal(predictor.id.updates, 6)
    // The same without the layer that is not added yet; its block is the third of four.
    const { learner: plain } = await learningParts(networkOf([dense, dense]), { backend: 'cpu' })
    const blocks = predictor.average.filter((_, k) => k !== 2)
    assert.deepEqual(learner.predict(predictor.average, rows, 0, 9), plain.predict(blocks, rows, 0, 9))
    const [score, expected] = [learner, plain].map((judge, i) => {
      const into = { loss: 0, hits: 0 }
      judge.score(i === 0 ? predictor.average : blocks, rows, 0, 48, into)
      return into
    })
    assert.deepEqual(score, expected)
  })

  it('is named in the error that ended the run, which keeps its code', async () => {
    const failure = Object.assign(new Error('the device is gone'), { code: 'ERR_DEVICE' })
    const messageOf = async (store: () => Promise<unknown>, so: SerialReport = report) => {
      const { message, code } = (await endedEarly(failure, 'there', () => so, store)) as typeof failure
      assert.equal(code, 'ERR_DEVICE')
      return message
    }
    const store = async () => undefined
    assert.equal(
      await messageOf(store),
      'the device is gone; what was learned from 5 inputs (5 updates) is stored in there'
    )
    assert.match(
      await messageOf(store, { ...report, updates: 0 }),
      /gone; nothing was learned yet, and nothing is stored$/
    )
    const full = () => Promise.reject(new Error('the disk is full'))
    assert.match(await messageOf(full), /gone; what was learned could not be stored: the disk is full$/)
  })

  it('is not written after an internal error', async () => {
    const bug = new TypeError('x is not a function')
    assert.equal(
      await endedEarly(
        bug,
        'there',
        () => report,
        () => assert.fail('stored')
      ),
      bug
    )
  })
})

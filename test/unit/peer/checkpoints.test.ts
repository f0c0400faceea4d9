/** Checkpoints between which only steps are stored: what a start restores after a kill, and how many bytes are written. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Random } from '../../../sim/engine/random.js'
import type { PredictorId } from '../../../src/admb/index.js'
import { readPredictor } from '../../../src/cli/training/stored.js'
import { createParser, type Rows } from '../../../src/data/index.js'
import { LearnerLoop } from '../../../src/peer/learner-loop.js'
import { storedPredictor } from '../../../src/peer/startup.js'
import type { FromLearner, SavedProgress } from '../../../src/peer/thread-messages.js'
import { Store } from '../../../src/storage/index.js'
import { linearParts } from '../../../src/task/learning-parts.js'
import type { LinearSpec } from '../../../src/task/learning-spec.js'
import { blocksOf } from '../../support/learner-init.js'

const DIMENSION = 20_000
const BATCH = 8
const spec: LinearSpec = {
  model: 'logistic',
  dimension: DIMENSION,
  rule: { name: 'adagrad' },
  averaging: { name: 'tail' },
  batch: BATCH,
  features: { constant: false, scale: 'none' }
}

describe('checkpoints', () => {
  let folder = ''
  let store: Store
  let loop: LearnerLoop
  let messages: FromLearner[] = []
  let now = 0
  let random: Random
  const written = { whole: 0, steps: 0, bytes: 0, wholeBytes: 0 }

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'admb-test-'))
    random = new Random(1)
    Object.assign(written, { whole: 0, steps: 0, bytes: 0, wholeBytes: 0 })
    store = await Store.open(join(folder, 'state'))
    await store.create(Uint8Array.of(1))
    await start()
  })
  afterEach(async () => {
    await store.close()
    await rm(folder, { recursive: true })
  })

  async function start(used = spec): Promise<void> {
    const { incarnation, nonce, checkpoint, journal } = await store.begin('{}')
    messages = []
    const saved = checkpoint && (await storedPredictor(store, checkpoint))
    const progress = checkpoint?.progress as SavedProgress | undefined
    loop = new LearnerLoop(
      {
        ...{ spec: used, plugins: [], execution: undefined, self: 'a', incarnation, nonce, period: 100, carry: 16 },
        ...{
          predictWith: 'average',
          stream: undefined,
          labelDelay: undefined,
          rate: undefined,
          saved,
          progress,
          journal
        }
      },
      linearParts(used),
      message => messages.push(message),
      () => now
    )
  }

  /** Stores what the loop has posted. @returns the predictor on the disk, if it has changed */
  async function flush(): Promise<PredictorId | undefined> {
    let stored: PredictorId | undefined
    for (const message of messages.splice(0)) {
      if (message.kind === 'journal') await store.append(message)
      if (message.kind !== 'checkpoint' && message.kind !== 'checkpoint-steps') continue
      stored = loop.status().predictor
      if (message.kind === 'checkpoint') {
        const { head } = message
        const blocks = blocksOf(loop, message)
        await store.save({ ...message, blocks })
        const bytes = [head, ...blocks].reduce((sum, { length }) => sum + length, 0)
        written.bytes += bytes
        written.wholeBytes += bytes
        written.whole++
      } else {
        await store.saveSteps(message)
        written.bytes += (message.steps?.head.length ?? 0) + (message.steps?.sums.length ?? 0)
        written.steps++
      }
      loop.receive({ kind: 'stored' })
    }
    return stored
  }

  function rows(count: number): Rows {
    const line = () => {
      const features = [1, 2, 3].map(() => `"${Math.floor(random.next() * DIMENSION)}": ${random.normal().toFixed(3)}`)
      return `{"label": ${random.next() < 0.5 ? 0 : 1}, "features": {${features.join(', ')}}}\n`
    }
    const text = Array.from({ length: count }, line).join('')
    return createParser('jsonl', { dimension: DIMENSION }).push(Buffer.from(text))
  }

  /** Learns for some periods. @returns the predictor on the disk */
  async function learn(periods: number, updates: () => number): Promise<PredictorId | undefined> {
    let stored: PredictorId | undefined
    for (let period = 0; period < periods; period++) {
      const count = updates()
      if (count > 0) loop.requests.answer(rows(count * BATCH), true)
      now += 100
      loop.tick()
      stored = (await flush()) ?? stored
    }
    return stored
  }

  for (const [kind, used] of [
    ['float32 sums', spec],
    ['integer sums', { ...spec, sums: 'lattice' }],
    ['local steps', { ...spec, localSteps: 2 }],
    ['a budget of bytes', { ...spec, sums: 'lattice', localSteps: 2, sumBytes: 0.5 }],
    ['a batch that adapts', { ...spec, batchMax: 16 }]
  ] as const)
    it(`restore the newest predictor after a kill between whole ones, to the last bit, with ${kind}`, async () => {
      await start(used)
      let stored = await learn(30, () => 2)
      assert.ok(stored !== undefined && stored.updates >= 50)
      for (let kill = 0; kill < 12; kill++) {
        await store.close()
        store = await Store.open(join(folder, 'state'))
        const checkpoint = await store.checkpoint()
        assert.ok(checkpoint)
        const { predictor } = await readPredictor(store, folder, used, checkpoint)
        assert.deepEqual(predictor.id, stored)
        await start(used)
        assert.deepEqual(loop.status().predictor, stored)
        // Also bursts, of which not all steps are kept.
        const more = await learn(2 + Math.floor(20 * random.next()), () =>
          random.next() < 0.05 ? 70 : Math.floor(3 * random.next())
        )
        stored = more ?? stored
      }
      assert.ok(
        written.steps > 3 * written.whole,
        `${written.whole} whole predictors, ${written.steps} records of steps`
      )
    })

  it('write few bytes', async () => {
    const updates = (await learn(500, () => 1))?.updates ?? 0
    assert.ok(updates >= 490)
    // The first predictors are sparse, and not larger than some steps.
    assert.ok(written.whole < 10, `${written.whole} whole predictors`)
    assert.ok(written.steps >= 90, `${written.steps} records of steps`)
    assert.ok(written.bytes < 2 * written.wholeBytes, 'at most as many as those of the whole predictors')
  })

  it('store no predictor if only the progress has changed', async () => {
    await learn(10, () => 1)
    await learn(20, () => 0)
    const { whole, bytes } = written
    for (let i = 0; i < 5; i++) {
      loop.requests.answer(rows(1), true)
      await learn(20, () => 0)
    }
    assert.equal(written.whole, whole)
    assert.equal(written.bytes, bytes)
    const progress = (await store.checkpoint())?.progress as SavedProgress
    assert.equal(progress.inputs, 10 * BATCH + 5)
  })
})

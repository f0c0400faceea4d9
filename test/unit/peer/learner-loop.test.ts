/** The learner loop alone: its messages are collected in a list, and the test sets the clock. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { createParser, type ExampleStream, type Rows } from '../../../src/data/index.js'
import { skipRows } from '../../../src/data/stages.js'
import { LearnerLoop } from '../../../src/peer/learner-loop.js'
import type { FromLearner, LearnerInit, SavedProgress, StoredPredictor } from '../../../src/peer/thread-messages.js'
import { linearParts } from '../../../src/task/learning-parts.js'
import type { LinearSpec } from '../../../src/task/learning-spec.js'
import { blocksOf, learnerInit } from '../../support/learner-init.js'

const CSV = { data: 'rows', format: 'jsonl', dimension: 2 } as const

const spec: LinearSpec = {
  model: 'logistic',
  dimension: 2,
  rule: { name: 'adagrad' },
  averaging: { name: 'uniform' },
  batch: 4,
  features: { constant: false, scale: 'none' }
}

function init(options: Partial<LearnerInit> = {}): LearnerInit {
  return learnerInit({ spec, stream: CSV, ...options })
}

const line = (i: number) => `{"label": ${i % 2}, "features": [${1 + (i % 5)}, ${i % 3}]}\n`

function rows(from: number, to: number): Rows {
  const text = Array.from({ length: to - from }, (_, i) => line(from + i)).join('')
  return createParser('jsonl', { dimension: 2 }).push(Buffer.from(text))
}

function streamOf(batches: readonly Rows[], skip = 0): ExampleStream {
  return {
    dimension: 2,
    classes: 2,
    hashBits: undefined,
    schema: undefined,
    interactions: undefined,
    featuresPerRow: undefined,
    label: undefined,
    scale: 'none',
    classCounts: undefined,
    newClasses: undefined,
    summary: undefined,
    isReplayable: true,
    skipped: 0,
    share: undefined,
    async *[Symbol.asyncIterator]() {
      yield* skipRows(Readable.from(batches), skip)
    }
  }
}

class Harness {
  readonly messages: FromLearner[] = []
  readonly loop: LearnerLoop
  now = 0
  pauses = 0
  /** Time that passes between two looks at the clock. */
  advancing = 0

  constructor(options: Partial<LearnerInit> = {}, parts = linearParts((options.spec ?? spec) as LinearSpec)) {
    this.loop = new LearnerLoop(
      init(options),
      parts,
      message => this.messages.push(message),
      () => {
        this.now += this.advancing
        return this.now
      }
    )
  }

  /** The stored predictor of a checkpoint. */
  whole(checkpoint: Extract<FromLearner, { kind: 'checkpoint' }>): StoredPredictor {
    return { head: checkpoint.head, blocks: blocksOf(this.loop, checkpoint) }
  }

  /** Learns the rows after the stored position. */
  run(...batches: Rows[]): Promise<void> {
    const { resume = 0 } = this.loop
    return this.loop.run(streamOf(batches, typeof resume === 'number' ? resume : resume.rows), async ms => {
      this.pauses++
      this.now += Math.max(ms, 0.1)
    })
  }

  get checkpoints(): Extract<FromLearner, { kind: 'checkpoint' | 'checkpoint-steps' }>[] {
    return this.messages.filter(message => message.kind === 'checkpoint' || message.kind === 'checkpoint-steps')
  }

  of<K extends FromLearner['kind']>(kind: K): Extract<FromLearner, { kind: K }>[] {
    return this.messages.filter((message): message is Extract<FromLearner, { kind: K }> => message.kind === kind)
  }
}

describe('LearnerLoop', () => {
  it('scores and learns inputs, and updates after each batch', async () => {
    const harness = new Harness()
    await harness.run(rows(0, 10))
    const { progress, predictor, ended } = harness.loop.status()
    assert.equal(progress.inputs, 10)
    assert.equal(progress.position, 10)
    assert.equal(predictor.updates, 2)
    assert.equal(ended, true)
    assert.ok(progress.loss > 0)
  })

  for (const predictWith of ['average', 'current', 'ahead'] as const) {
    for (const dimension of [2, 5000]) {
      it(`keeps a predictor for download while it learns (${predictWith}, dimension ${dimension})`, async () => {
        const { loop, ...harness } = new Harness({ predictWith, spec: { ...spec, dimension } })
        for (let i = 0; i < 3; i++) loop.requests.answer(rows(10 * i, 10 * i + 9), true)
        const kept = loop.lastingServing()
        const copy = structuredClone(kept.blocks)
        for (let i = 3; i < 9; i++) loop.requests.answer(rows(10 * i, 10 * i + 9), true)
        assert.deepEqual(kept.blocks, copy)
        assert.notDeepEqual(loop.lastingServing().blocks, copy)
        assert.deepEqual(
          harness.messages.filter(({ kind }) => kind === 'warning'),
          []
        )
      })
    }
  }

  it('counts exactly the learned rows in the moments', async () => {
    const base = init().spec
    const spec = { ...base, features: { ...base.features, scale: 'standard' as const } }
    const whole = new Harness({ spec: spec })
    await whole.run(rows(0, 40))
    whole.loop.checkpoint()
    const [expected] = whole.of('checkpoint')

    let progress: SavedProgress | undefined
    let saved: StoredPredictor | undefined
    for (const [incarnation, to] of [7, 8, 40].entries()) {
      const harness = new Harness({ spec, progress, saved, incarnation: incarnation + 1 })
      await harness.run(rows(0, to))
      harness.loop.checkpoint()
      const [stored] = harness.checkpoints
      progress = JSON.parse(JSON.stringify(stored.progress)) as SavedProgress
      if (stored.kind === 'checkpoint') saved = harness.whole(stored)
      else if (saved && stored.steps) saved = { ...saved, steps: [...(saved.steps ?? []), stored.steps] }
    }
    assert.deepEqual(progress?.moments, expected.progress.moments)
    assert.equal(expected.progress.moments?.[0][1], 40)
    const before = whole.loop.status()
    whole.loop.requests.answer(rows(0, 3), false)
    assert.deepEqual(whole.loop.status(), before, 'predictions are not counted')
  })

  it('skips inputs that do not fit, and limits the warnings', async () => {
    const harness = new Harness({ spec: { ...init().spec, dimension: 1 } })
    await harness.run(rows(0, 300))
    const { progress, skipped } = harness.loop.status()
    assert.equal(progress.inputs, 0)
    assert.equal(skipped, 300)
    assert.equal(harness.of('warning').length, 10)
    assert.match(harness.of('warning')[9].reason, /further warnings are logged at most every 10 s/)
  })

  it('judges predictors by the newest inputs, also after requests with few', () => {
    const labelled = (from: number, to: number, sign: 1 | -1): Rows => {
      const text = Array.from({ length: to - from }, (_, i) => {
        const value = Math.sin(12.9 * (from + i))
        return `${JSON.stringify({ label: Number(sign * value > 0), features: [value, 1] })}\n`
      })
      return createParser('jsonl', { dimension: 2 }).push(Buffer.from(text.join('')))
    }
    const [harness, other] = [new Harness(), new Harness({ self: 'other' })]
    harness.loop.requests.answer(labelled(0, 1000, 1), true)
    harness.loop.requests.answer(labelled(1000, 2000, -1), true)
    other.loop.requests.answer(labelled(0, 3000, -1), true)
    harness.loop.receive({ kind: 'fetched', bytes: other.loop.saved(), from: 'other' })
    assert.deepEqual(harness.of('warning'), [])
    assert.deepEqual(harness.loop.status().predictor, other.loop.status().predictor)
  })

  it('answers requests with many rows in slices, with the same answers and the same predictor', () => {
    const messages: FromLearner[] = []
    const reference = new Harness()
    const whole = reference.loop.requests.answer(rows(0, 40), true)
    let now = 0
    const loop = new LearnerLoop(
      init(),
      linearParts(spec),
      message => messages.push(message),
      () => now++
    )
    const slices = [...loop.requests.slices(rows(0, 40), true)]
    assert.ok(slices.length > 8, `${slices.length} slices`)
    assert.deepEqual({ predictions: slices.flat(), predictor: loop.status().predictor }, whole)
    const predicted = [...loop.requests.slices(rows(0, 40), false)]
    assert.ok(predicted.length > 1, `${predicted.length} slices`)
    assert.deepEqual(predicted.flat(), reference.loop.requests.answer(rows(0, 40), false).predictions)
  })

  it('posts one checkpoint at a time, and none if nothing has changed', async () => {
    const harness = new Harness()
    await harness.run(rows(0, 8))
    const ticks = (count: number) => {
      for (let i = 0; i < count; i++) {
        harness.now += 100
        harness.loop.tick()
      }
    }
    ticks(20)
    assert.equal(harness.checkpoints.length, 1)
    harness.loop.receive({ kind: 'stored' })
    // Ten times as long as it took.
    ticks(200)
    assert.equal(harness.checkpoints.length, 1)
    harness.loop.requests.answer(rows(0, 1), true)
    ticks(1)
    assert.equal(harness.checkpoints.length, 2)
  })

  it('sends one frame at a time on an edge, always the newest', () => {
    const [a, b] = [new Harness(), new Harness({ self: 'b' })]
    a.loop.receive({ kind: 'connect', edge: 1, peer: 'b' })
    b.loop.receive({ kind: 'connect', edge: 1, peer: 'a' })
    for (const harness of [a, b]) harness.loop.tick()
    assert.equal(a.of('frame').length, 1)
    a.loop.receive({ kind: 'frame', edge: 1, bytes: b.of('frame')[0].bytes })
    assert.equal(a.of('consumed').length, 1)
    a.loop.requests.answer(rows(0, 8), true)
    a.loop.tick()
    assert.equal(a.of('frame').length, 1, 'the first is still pending')
    b.loop.receive({ kind: 'frame', edge: 1, bytes: a.of('frame')[0].bytes })
    a.loop.receive({ kind: 'writable', edge: 1 })
    assert.equal(a.of('frame').length, 2)
    b.loop.receive({ kind: 'frame', edge: 1, bytes: a.of('frame')[1].bytes })
    assert.deepEqual(b.loop.status().predictor, a.loop.status().predictor)
    assert.equal(b.loop.status().predictor.updates, 2)
  })

  it('passes an update of its stream on at once, when the position in the stream is behind all inputs that are recorded', async () => {
    const [a, b] = [new Harness(), new Harness({ self: 'b' })]
    a.loop.receive({ kind: 'connect', edge: 1, peer: 'b' })
    b.loop.receive({ kind: 'connect', edge: 1, peer: 'a' })
    a.loop.receive({ kind: 'frame', edge: 1, bytes: b.of('frame')[0].bytes })
    a.loop.receive({ kind: 'writable', edge: 1 })
    const before = a.of('frame').length
    await a.run(rows(0, 6))
    const frames = a.of('frame').slice(before)
    assert.equal(frames.length, 1, 'no tick has passed')
    b.loop.receive({ kind: 'frame', edge: 1, bytes: frames[0].bytes })
    assert.equal(b.loop.status().predictor.updates, 1)
    const journal = a.of('journal')
    assert.ok(journal.length > 0)
    for (const { tail } of journal) {
      const { next, position } = JSON.parse(tail?.text ?? '{}')
      assert.equal(position, next)
    }
  })

  it('stops between slices', async () => {
    const harness = new Harness({ rate: 1000 })
    await harness.loop.run(streamOf([rows(0, 200), rows(200, 400)]), async ms => {
      harness.now += Math.max(ms, 1)
      if (harness.loop.status().progress.inputs >= 100) harness.loop.stop()
    })
    const { progress, ended } = harness.loop.status()
    assert.ok(progress.inputs >= 100 && progress.inputs < 200, `${progress.inputs} inputs`)
    assert.equal(progress.position, progress.inputs)
    assert.equal(ended, false)
    const stopped = new Harness()
    stopped.loop.stop()
    await stopped.run(rows(0, 200))
    assert.equal(stopped.loop.status().progress.inputs, 0)
    assert.equal(stopped.loop.status().ended, false)
  })

  it('scales the rows of requests that are learned at the same time as if each had come alone', () => {
    const features = { constant: false, scale: 'standard', columns: undefined } as const
    const scaled: LinearSpec = { ...spec, batch: 1000, features }
    const [together, alone] = [
      new Harness({ spec: scaled, stream: undefined }),
      new Harness({ spec: scaled, stream: undefined })
    ]
    // Each slice is one row.
    together.advancing = 5
    const answers = [rows(0, 8), rows(3, 11)].map(request => together.loop.requests.slices(request, true))
    const predicted = Array.from({ length: 8 }, () => answers.map(answer => answer.next().value)).flat()
    const expected = Array.from({ length: 8 }, (_, row) => [row, row + 3])
      .flat()
      .map(row => alone.loop.requests.answer(rows(row, row + 1), true).predictions)
    assert.deepEqual(predicted, expected)
    const gradients = ({ loop }: Harness) => loop.status().progress
    assert.deepEqual(gradients(together), gradients(alone))
  })
})

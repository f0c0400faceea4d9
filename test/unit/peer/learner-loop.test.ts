/** The learner's loop by itself: messages go to a list, time stands where the test puts it. */
import assert from 'node:assert/strict'
import { isFragment } from '../../../src/admb/index.js'
import { type Learner, zeros } from '../../../src/learner/index.js'
import { LearnerLoop } from '../../../src/peer/learner-loop.js'
import type { FromLearner, LearnerInit, SavedProgress, StoredPredictor } from '../../../src/peer/thread-messages.js'
import { createParser, type ExampleStream, openStream, type Rows } from '../../../src/streams/index.js'
import { type LearningParts, type LinearSpec, linearParts } from '../../../src/task/learning-spec.js'

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
  return {
    spec,
    plugins: [],
    execution: undefined,
    self: 'a',
    incarnation: 1,
    period: 50,
    carry: 0,
    predictWith: 'average',
    stream: CSV,
    rate: undefined,
    saved: undefined,
    progress: undefined,
    durable: true,
    ...options
  }
}

const line = (i: number) => `{"label": ${i % 2}, "features": [${1 + (i % 5)}, ${i % 3}]}\n`

function rows(from: number, to: number): Rows {
  const text = Array.from({ length: to - from }, (_, i) => line(from + i)).join('')
  return createParser('jsonl', { dimension: 2 }).push(Buffer.from(text))
}

function streamOf(batches: readonly Rows[]): ExampleStream {
  return {
    dimension: 2,
    classes: 2,
    hashBits: undefined,
    columns: undefined,
    skipped: 0,
    share: undefined,
    async *[Symbol.asyncIterator]() {
      yield* batches
    }
  }
}

class Bench {
  readonly said: FromLearner[] = []
  readonly loop: LearnerLoop
  now = 0
  pauses = 0

  constructor(options: Partial<LearnerInit> = {}, parts = linearParts((options.spec ?? spec) as LinearSpec)) {
    this.loop = new LearnerLoop(
      init(options),
      parts,
      message => this.said.push(message),
      () => this.now
    )
  }

  run(...batches: Rows[]): Promise<void> {
    return this.loop.run(streamOf(batches), async ms => {
      this.pauses++
      this.now += Math.max(ms, 0.1)
    })
  }

  of<K extends FromLearner['kind']>(kind: K): Extract<FromLearner, { kind: K }>[] {
    return this.said.filter((message): message is Extract<FromLearner, { kind: K }> => message.kind === kind)
  }
}

/** A model of three large layers whose gradient takes a while for each, the last one first; the gradient is 1 everywhere. */
function layered(passes: (ms: number) => void, sees: () => void): LearningParts {
  const layout = { blocks: [0, 1, 2].map(k => ({ name: `layer ${k}`, length: 400_000 })) }
  const learner: Learner = {
    layout,
    classifies: false,
    initial: () => zeros(layout),
    score: () => undefined,
    predict: () => [],
    addGradient(_parameters, _examples, from, to, sum, progress) {
      for (const block of [2, 1, 0]) {
        passes(30)
        sees()
        for (let i = 0; i < sum[block].length; i++) sum[block][i] += to - from
        progress?.ready(block)
      }
    }
  }
  return { learner, recipe: linearParts(spec).recipe }
}

describe('LearnerLoop', () => {
  it('scores, then learns, and updates with every batch', async () => {
    const bench = new Bench()
    await bench.run(rows(0, 10))
    const { progress, predictor, ended } = bench.loop.status()
    assert.equal(progress.inputs, 10)
    assert.equal(progress.position, 10)
    assert.equal(predictor.updates, 2)
    assert.equal(ended, true)
    assert.ok(progress.loss > 0)
  })

  it('takes inputs no faster than its rate', async () => {
    const bench = new Bench({ rate: 100 })
    await bench.run(rows(0, 50))
    assert.ok(bench.now >= 490 && bench.now < 600, `50 inputs at 100 a second took ${bench.now} ms`)
  })

  it('goes on from a checkpoint in the same stream, learning every row once', async () => {
    const whole = new Bench()
    await whole.run(rows(0, 12), rows(12, 30))
    whole.loop.checkpoint()

    const first = new Bench()
    await first.run(rows(0, 12))
    first.loop.checkpoint()
    const [{ head, blocks, progress }] = first.of('checkpoint')
    const predictor = { head, blocks }
    const second = new Bench({ incarnation: 2, saved: predictor, progress })
    await second.run(rows(0, 12), rows(12, 30))
    second.loop.checkpoint()
    const end = (bench: Bench) => bench.of('checkpoint').at(-1)?.progress
    assert.deepEqual(end(second), end(whole))

    const elsewhere = new Bench({ incarnation: 2, saved: predictor, progress, stream: { ...CSV, data: 'other' } })
    await elsewhere.run(rows(0, 5))
    assert.equal(elsewhere.loop.status().progress.inputs, 17)
    assert.equal(elsewhere.loop.status().progress.position, 5)

    const idle = new Bench({ incarnation: 2, saved: predictor, progress, stream: undefined })
    assert.deepEqual(idle.loop.status().progress, first.loop.status().progress, 'its place is kept')
  })

  it('keeps the moments of exactly the rows learned', async () => {
    const base = init().spec
    const spec = { ...base, features: { ...base.features, scale: 'standard' as const } }
    const whole = new Bench({ spec: spec })
    await whole.run(rows(0, 40))
    whole.loop.checkpoint()
    const [expected] = whole.of('checkpoint')

    let progress: SavedProgress | undefined
    let saved: StoredPredictor | undefined
    for (const [incarnation, to] of [7, 8, 40].entries()) {
      const bench = new Bench({ spec, progress, saved, incarnation: incarnation + 1 })
      await bench.run(rows(0, to))
      bench.loop.checkpoint()
      const [stored] = bench.of('checkpoint')
      progress = JSON.parse(JSON.stringify(stored.progress)) as SavedProgress
      saved = stored
    }
    assert.deepEqual(progress?.moments, expected.progress.moments)
    assert.equal(expected.progress.moments?.[0][1], 40)
    const before = whole.loop.status()
    whole.loop.answer(rows(0, 3), false)
    assert.deepEqual(whole.loop.status(), before, 'a prediction counts nothing')
  })

  it('leaves out what does not fit, and does not flood anybody with it', async () => {
    const bench = new Bench({ spec: { ...init().spec, dimension: 1 } })
    await bench.run(rows(0, 300))
    const { progress, skipped } = bench.loop.status()
    assert.equal(progress.inputs, 0)
    assert.equal(skipped, 300)
    assert.equal(bench.of('warning').length, 10)
    assert.match(bench.of('warning')[9].reason, /further ones are told every 10 s at most/)
  })

  it('asks for one checkpoint at a time, and for none when nothing has changed', async () => {
    const bench = new Bench()
    await bench.run(rows(0, 8))
    const ticks = (count: number) => {
      for (let i = 0; i < count; i++) {
        bench.now += 100
        bench.loop.tick()
      }
    }
    ticks(20)
    assert.equal(bench.of('checkpoint').length, 1)
    bench.loop.receive({ kind: 'stored' })
    ticks(20)
    assert.equal(bench.of('checkpoint').length, 1)
    bench.loop.answer(rows(0, 1), true)
    ticks(1)
    assert.equal(bench.of('checkpoint').length, 2)
  })

  it('sends an edge one frame at a time, the newest', () => {
    const [a, b] = [new Bench(), new Bench({ self: 'b' })]
    a.loop.receive({ kind: 'connect', edge: 1, peer: 'b' })
    b.loop.receive({ kind: 'connect', edge: 1, peer: 'a' })
    for (const bench of [a, b]) bench.loop.tick()
    assert.equal(a.of('frame').length, 1)
    a.loop.receive({ kind: 'frame', edge: 1, bytes: b.of('frame')[0].bytes })
    assert.equal(a.of('consumed').length, 1)
    a.loop.answer(rows(0, 8), true)
    a.loop.tick()
    assert.equal(a.of('frame').length, 1, 'the first is still on its way')
    b.loop.receive({ kind: 'frame', edge: 1, bytes: a.of('frame')[0].bytes })
    a.loop.receive({ kind: 'writable', edge: 1 })
    assert.equal(a.of('frame').length, 2)
    b.loop.receive({ kind: 'frame', edge: 1, bytes: a.of('frame')[1].bytes })
    assert.deepEqual(b.loop.status().predictor, a.loop.status().predictor)
    assert.equal(b.loop.status().predictor.updates, 2)
  })

  it('sends a large model’s sums and steps layer by layer while the lower layers are still computed', () => {
    const sent: Record<'a' | 'b', number[]> = { a: [], b: [] }
    const [a, b]: Bench[] = (['a', 'b'] as const).map(
      self =>
        new Bench(
          { self },
          layered(
            ms => (bench[self].now += ms),
            () => sent[self].push(bench[self].of('frame').length)
          )
        )
    )
    const bench = { a, b }
    const taken = { a: 0, b: 0 }
    /** What each has said reaches the other, in order. */
    const exchange = () => {
      for (let more = true; more; ) {
        more = false
        for (const [from, to] of [
          ['a', 'b'],
          ['b', 'a']
        ] as const) {
          for (const { bytes } of bench[from].of('frame').slice(taken[from])) {
            taken[from]++
            more = true
            bench[to].loop.receive({ kind: isFragment(bytes) ? 'part' : 'frame', edge: 1, bytes })
            bench[from].loop.receive({ kind: 'writable', edge: 1 })
          }
        }
      }
    }
    a.loop.receive({ kind: 'connect', edge: 1, peer: 'b' })
    b.loop.receive({ kind: 'connect', edge: 1, peer: 'a' })
    exchange()
    // The first gradient shows that one takes longer than a period.
    a.loop.answer(rows(0, 1), true)
    exchange()
    assert.deepEqual(sent.a, [1, 1, 1])
    a.loop.tick()
    exchange()
    const before = a.of('frame').length
    a.loop.answer(rows(1, 2), true)
    assert.deepEqual(sent.a.slice(3), [before, before + 1, before + 2], 'a sum leaves as its layers come')
    assert.equal(a.of('frame').length, before + 4)
    exchange()
    // Two gradients at a; with two of b's own it updates, and the step leaves likewise.
    b.loop.answer(rows(2, 3), true)
    exchange()
    const earlier = b.of('frame').length
    b.loop.answer(rows(3, 4), true)
    assert.deepEqual(sent.b.slice(3), [earlier, earlier + 1, earlier + 2], 'a step leaves as its layers come')
    assert.equal(b.loop.status().predictor.updates, 1)
    assert.equal(a.loop.status().predictor.updates, 0)
    exchange()
    assert.deepEqual(a.loop.status().predictor, b.loop.status().predictor)
    assert.equal(a.of('refused').length + b.of('refused').length, 0)
  })

  it('stops between slices', async () => {
    const bench = new Bench()
    const stream = streamOf([rows(0, 200), rows(200, 400)])
    await bench.loop.run(stream, async () => undefined).then(() => undefined)
    assert.equal(bench.loop.status().progress.inputs, 400)
    const stopped = new Bench()
    stopped.loop.stop()
    await stopped.run(rows(0, 200))
    assert.equal(stopped.loop.status().progress.inputs, 0)
    assert.equal(stopped.loop.status().ended, false)
  })

  it('reads the built-in digits as it reads anything', async () => {
    const digits = await openStream({ data: 'digits', maxRows: 64 })
    const digitSpec = { ...spec, model: 'softmax' as const, classes: 10, dimension: 784 }
    const bench = new Bench({ spec: digitSpec })
    await bench.loop.run(digits, async () => undefined)
    assert.equal(bench.loop.status().predictor.updates, 16)
  })
})

/** The learner loop with differential privacy: what it posts, and in which order. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createParser, openStream } from '../../../src/data/index.js'
import { LearnerLoop } from '../../../src/peer/learner-loop.js'
import type { StoredBudget } from '../../../src/peer/privacy-budget.js'
import type { FromLearner, LearnerInit } from '../../../src/peer/thread-messages.js'
import { linearParts } from '../../../src/task/learning-parts.js'
import type { LinearSpec } from '../../../src/task/learning-spec.js'
import { learnerInit } from '../../support/learner-init.js'

const ROWS = 10
const OPTIONS = { epsilon: 1, delta: 1e-6, clip: 1, releases: 2 }
const spec: LinearSpec = {
  model: 'logistic',
  dimension: 2,
  rule: { name: 'adagrad' },
  averaging: { name: 'uniform' },
  batch: 7,
  features: { constant: false, scale: 'none' }
}
const row = (i: number) => `{"label": ${i % 2}, "features": [${1 + (i % 5)}, ${i % 3}]}\n`
const pause = () => Promise.resolve()

describe('the learner loop with differential privacy', () => {
  let folder = ''
  let messages: FromLearner[] = []
  let now = 0
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'admb-test-'))
    messages = []
    await writeFile(join(folder, 'rows.jsonl'), Array.from({ length: ROWS }, (_, i) => row(i)).join(''))
  })
  afterEach(() => rm(folder, { recursive: true }))

  function start(passes: number, more: Partial<LearnerInit> = {}): LearnerLoop {
    const stream = { data: join(folder, 'rows.jsonl'), dimension: 2, passes }
    const init = learnerInit({ spec, stream, budget: { options: OPTIONS }, ...more })
    return new LearnerLoop(
      init,
      linearParts(spec, true, OPTIONS.clip),
      message => messages.push(message),
      () => now
    )
  }
  const of = <K extends FromLearner['kind']>(kind: K) =>
    messages.filter((message): message is Extract<FromLearner, { kind: K }> => message.kind === kind)
  /** Numbers of the inputs of each recorded segment. */
  const segments = (): number[][] =>
    of('journal')
      .flatMap(({ records }) => records.map(([, text]) => JSON.parse(text)))
      .filter(({ kind }) => kind === 'segment')
      .map(({ inputs }) => inputs)
  const budgets = () =>
    of('journal').flatMap(({ budget }) => (budget === undefined ? [] : [JSON.parse(budget) as StoredBudget]))

  it('ends segments with passes, charges each pass with its first segment, and stops at the budget', async () => {
    const loop = start(3)
    await loop.run(await openStream({ data: join(folder, 'rows.jsonl'), dimension: 2, passes: 3 }), pause)
    loop.checkpoint()
    const { progress, privacy, ended } = loop.status()
    assert.equal(progress.inputs, 2 * ROWS)
    assert.equal(ended, true)
    assert.deepEqual([privacy?.released, privacy?.exhausted], [2, true])
    assert.ok(Math.abs((privacy?.spent ?? 0) - OPTIONS.epsilon) < 1e-6)
    const recorded = segments()
    assert.equal(recorded.at(-1)?.at(-1), 2 * ROWS)
    assert.ok(
      recorded.every(([first, end]) => end <= ROWS || first >= ROWS),
      `a segment has inputs of both passes: ${recorded}`
    )
    assert.equal(budgets().at(-1)?.passes, 2)
    assert.equal(of('notice').filter(({ line }) => line.includes('budget is spent')).length, 1)
    const rows = createParser('jsonl', { dimension: 2 }).push(Buffer.from(row(0)))
    assert.throws(() => loop.requests.answer(rows, true), /budget of this peer is spent/)
    assert.equal(loop.requests.answer(rows, false).predictions.length, 1)
  })

  it('continues a pass at no charge, and charges one that starts again', async () => {
    const first = start(1)
    const half = await openStream({ data: join(folder, 'rows.jsonl'), dimension: 2, maxRows: 5 })
    await first.run(half, pause)
    first.checkpoint()
    const [stored] = budgets().slice(-1)
    const tail = of('journal').at(-1)?.tail?.text
    const progress = JSON.parse(tail as string)
    const again = async (from: 'stored' | 'start') => {
      messages = []
      const loop = start(1, { budget: { options: OPTIONS, stored }, progress })
      const { resume } = loop
      await loop.run(await openStream({ data: join(folder, 'rows.jsonl'), dimension: 2, resume, from }), pause)
      return loop.status()
    }
    const continued = await again('stored')
    assert.deepEqual([continued.progress.inputs, continued.privacy?.released], [ROWS, 1])
    const repeated = await again('start')
    assert.deepEqual([repeated.progress.inputs, repeated.privacy?.released], [5 + ROWS, 2])
  })

  it('posts the record of a noisy sum before its announcement and its status', async () => {
    const loop = start(1)
    await loop.run(await openStream({ data: join(folder, 'rows.jsonl'), dimension: 2 }), pause)
    now += 2000
    loop.tick()
    const at = (kind: FromLearner['kind']) => messages.findIndex(message => message.kind === kind)
    assert.equal(loop.status().predictor.updates, 1)
    assert.ok(at('journal') >= 0 && segments().length > 0)
    assert.ok(at('announce') > at('journal'), `announced at ${at('announce')}, recorded at ${at('journal')}`)
    assert.ok(at('status') > at('journal'))
    assert.equal(budgets()[0]?.passes, 1)
  })

  it('leaves out inputs of an earlier run that no update has used', async () => {
    const first = start(1)
    const part = await openStream({ data: join(folder, 'rows.jsonl'), dimension: 2, maxRows: 5 })
    await first.run(part, pause)
    first.checkpoint()
    const journal = of('journal')
    const records = journal.flatMap(({ records }) => records.map(([, text]) => text))
    const tail = journal.at(-1)?.tail?.text
    const stored = budgets().at(-1)
    messages = []
    const loop = start(1, {
      incarnation: 2,
      nonce: 1,
      journal: { records, pending: [], tail },
      progress: JSON.parse(tail as string),
      budget: { options: OPTIONS, stored }
    })
    const data = { data: join(folder, 'rows.jsonl'), dimension: 2 }
    const open = () => assert.fail('no input is read again')
    await loop.run(await openStream({ ...data, resume: loop.resume }), pause)
    const rows = createParser('jsonl', { dimension: 2 }).push(Buffer.from(row(0) + row(1)))
    loop.requests.answer(rows, true)
    const recovery = loop.recover(open, pause)
    loop.stop()
    await recovery
    assert.equal(loop.status().predictor.updates, 1, 'the five left, and two of a request')
    assert.equal(loop.status().discarded, 5)
    assert.equal(of('notice').filter(({ line }) => line.startsWith('5 inputs of earlier runs')).length, 1)
  })
})

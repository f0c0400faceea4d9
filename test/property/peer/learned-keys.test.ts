/** Requests with keys are learned once, whatever is repeated, and wherever a crash cuts the journal. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createParser, type Rows } from '../../../src/data/index.js'
import type { InputPiece } from '../../../src/peer/input-log.js'
import { KEY_WINDOW, LearnedKeys } from '../../../src/peer/learned-keys.js'
import { LearnerLoop } from '../../../src/peer/learner-loop.js'
import type { FromLearner } from '../../../src/peer/thread-messages.js'
import type { JournalAppend, StoredJournal } from '../../../src/storage/index.js'
import { linearParts } from '../../../src/task/learning-parts.js'
import type { LinearSpec } from '../../../src/task/learning-spec.js'
import { learnerInit } from '../../support/learner-init.js'

const ROWS = 12

const spec: LinearSpec = {
  model: 'logistic',
  dimension: 2 * ROWS,
  rule: { name: 'adagrad' },
  averaging: { name: 'uniform' },
  batch: 1000,
  features: { constant: false, scale: 'none' }
}

/** Rows of which each has a feature of its own. */
function rowsFrom(first: number): Rows {
  const lines = Array.from({ length: ROWS }, (_, row) => `1 ${first + row + 1}:1\n`)
  return createParser('libsvm', { dimension: 2 * ROWS }).push(Buffer.from(lines.join('')))
}

/** A learner, each of whose slices is one row. */
function createLoop(incarnation: number, journal: StoredJournal) {
  const posted: FromLearner[] = []
  let time = 0
  const loop = new LearnerLoop(
    learnerInit({ spec, stream: undefined, incarnation, journal }),
    linearParts(spec),
    message => posted.push(message),
    () => {
      time += 5
      return time
    }
  )
  return { loop, posted }
}

type Loop = ReturnType<typeof createLoop>

/** Learns a request. @param recorded the slices after which the journal is written, as before a frame */
function learn({ loop }: Loop, key: string, rows: Rows, recorded: ReadonlySet<number>): void {
  const progress = loop.requests.begin(key)
  let slice = 0
  for (const _ of loop.requests.slices(rows, true, progress)) {
    if (recorded.has(slice++)) loop.checkpoint()
  }
  loop.requests.end(progress)
}

const appendsOf = (messages: readonly FromLearner[]) =>
  messages.filter(({ kind }) => kind === 'journal') as JournalAppend[]

function stored(appends: readonly JournalAppend[]): StoredJournal {
  const tail = appends.findLast(one => one.tail)?.tail
  const pending = appends.flatMap(one => one.pending).filter(([first]) => first >= (tail?.next ?? 0))
  return {
    records: appends.flatMap(({ records }) => records.map(([, text]) => text)),
    pending: pending.map(([, text]) => text),
    tail: tail?.text,
    keys: appends.findLast(({ keys }) => keys)?.keys
  }
}

/** How often the feature of each row is in a segment that is not a repetition of another one. */
function usesIn(appends: readonly JournalAppend[]): number[] {
  const uses = new Array<number>(2 * ROWS).fill(0)
  for (const [, text] of appends.flatMap(({ records }) => records)) {
    const { of, pieces = [] } = JSON.parse(text) as { of?: number; pieces?: readonly InputPiece[] }
    if (of === undefined)
      for (const { rows } of pieces) for (const feature of rows?.indices.values ?? []) uses[feature]++
  }
  return uses
}

describe('requests with keys', () => {
  it('are learned once if the peer crashes at any instant and they are sent again', async () => {
    const slices = fc.uniqueArray(fc.nat(ROWS), { maxLength: ROWS }).map(list => new Set(list))
    await fc.assert(
      fc.asyncProperty(slices, slices, fc.nat(40), async (recorded, later, cut) => {
        const first = createLoop(1, { records: [], pending: [], tail: undefined })
        learn(first, 'split:s:1', rowsFrom(0), recorded)
        const complete = appendsOf(first.posted).length
        learn(first, 'order-7', rowsFrom(ROWS), recorded)
        const durable = appendsOf(first.posted).slice(0, cut)
        const second = createLoop(2, stored(durable))
        const recovering = second.loop.recover(
          () => assert.fail('no stream is read again'),
          async () => undefined
        )
        for (let time = 0; time < 2; time++) {
          learn(second, 'split:s:1', rowsFrom(0), later)
          learn(second, 'order-7', rowsFrom(ROWS), later)
        }
        second.loop.checkpoint()
        second.loop.stop()
        await recovering
        const uses = usesIn([...durable, ...appendsOf(second.posted)])
        assert.deepEqual(uses, new Array(2 * ROWS).fill(1), `cut ${cut} of ${complete}`)
      }),
      { numRuns: 150 }
    )
  })

  it('are remembered in bounded space, whatever their order within the window', () => {
    const jumps = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(jumps, steps => {
        let keys = new LearnedKeys(undefined)
        const known: number[] = []
        let number = 0
        let size = 0
        for (const [i, step] of steps.entries()) {
          number += step
          // Some numbers are never sent, and some arrive late.
          const late = i % 3 === 0 ? Math.max(1, number - 7) : number
          for (const one of [number, late]) {
            keys.begin(`split:a:${one}`).end()
            known.push(one)
          }
          const text = keys.take()
          size = Math.max(size, text?.length ?? 0)
          if (i % 10 === 0 && text !== undefined) keys = new LearnedKeys(text)
        }
        assert.ok(known.every(one => keys.begin(`split:a:${one}`).from === Number.POSITIVE_INFINITY))
        assert.equal(keys.begin(`split:a:${number + 1}`).from, 0)
        assert.equal(keys.begin(`split:b:${number}`).from, 0)
        assert.ok(size < 40 + 5 * KEY_WINDOW, `${size} characters`)
      })
    )
  })

  it('of one sender are remembered if they are learned at the same time', () => {
    const keys = new LearnedKeys(undefined)
    const begun = [1, 2, 3].map(number => keys.begin(`split:new:${number}`))
    begun[2].learned(5)
    begun[0].end()
    begun[1].learned(7)
    const later = new LearnedKeys(keys.take())
    const from = [1, 2, 3].map(number => later.begin(`split:new:${number}`).from)
    assert.deepEqual(from, [Number.POSITIVE_INFINITY, 7, 5])
  })

  it('have numbers from 1 without zeros before them, and others are keys of their own', () => {
    const keys = new LearnedKeys(undefined)
    for (const number of [1, 2]) keys.begin(`split:a:${number}`).end()
    const from = ['split:a:0', 'split:a:01', 'split:a:2'].map(key => keys.begin(key).from)
    assert.deepEqual(from, [0, 0, Number.POSITIVE_INFINITY])
  })

  it('of the sender that was used longest ago are forgotten first', () => {
    const keys = new LearnedKeys(undefined)
    for (let i = 0; i < 300; i++) {
      keys.begin(`${i}`).end()
      keys.begin('in use').end()
      keys.begin(`split:s:${i + 1}`).end()
    }
    const isLearned = (key: string) => keys.begin(key).from > 0
    assert.deepEqual(['0', '299', 'split:s:300'].map(isLearned), [false, true, true])
  })
})

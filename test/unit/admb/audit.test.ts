/** The audit of a journal that was written by hand: what is known of each of its segments. */
import assert from 'node:assert/strict'
import { auditJournal, joinLineages, otherContributors } from '../../../src/admb/core/audit.js'
import type { Header, JournalRecord, PredictorId } from '../../../src/admb/index.js'
import { ContributorTable, coverageOf } from '../../../src/admb/state/coverage.js'

const run = { incarnation: 1, nonce: 0 }
const idOf = (updates: number, origin = 'x'): PredictorId => ({ updates, origin, ...run, digest: '' })
const [p0, p1, p2, p3] = [0, 1, 2, 3].map(updates => idOf(updates))
const rival = idOf(2, 'rival')

/** The lineage of `p3` back to `p1`, with so many segments of the node in the batches. */
function lineageOf(inThird: number, inSecond: number, table: ContributorTable) {
  const [own, other] = ['me', 'x'].map(origin => table.indexOf({ origin, ...run }))
  const header = (id: PredictorId, parent: PredictorId, segments: number, others: number): Header => ({
    ...{ id, parent, count: 9, coverage: coverageOf([own, other], [segments, others]) }
  })
  return { id: p3, headers: [header(p3, p2, inThird, 2), header(p2, p1, inSecond, 1)] }
}

/** Epochs `first` to `first + 4`: at `p0`, `p1`, a rival of `p2`, `p2` and `p3`. */
function journal(first = 2): JournalRecord[] {
  const epoch = (number: number, id: PredictorId, carried: number[] = [], open: number[] = []) =>
    ({ kind: 'epoch', number: first + number, id, ...run, carried, open }) as const
  const segment = (number: number, at: number, ...inputs: number[]) =>
    ({ kind: 'segment', number, epoch: first + at, inputs }) as const
  return [
    ...[epoch(0, p0), segment(1, 0, 0, 1)],
    ...[epoch(1, p1), segment(2, 1, 1, 2)],
    ...[epoch(2, rival), segment(3, 2, 2, 3), segment(4, 2, 3, 4)],
    ...[epoch(3, p2, [2]), segment(5, 3, 4, 6), segment(6, 3, 6, 7)],
    ...[epoch(4, p3, [6], [3]), segment(7, 4, 7, 8)]
  ]
}

function audited(records: readonly JournalRecord[], liveFrom = 1, inThird = 2, inSecond = 0) {
  const table = new ContributorTable()
  return auditJournal('me', records, liveFrom, lineageOf(inThird, inSecond, table), table)
}

describe('an audited journal', () => {
  it('tells used segments, those that may still be used, unknown and unused ones', () => {
    const { segments, unrecorded, isWhole } = audited(journal())
    assert.deepEqual(
      segments.map(({ state, uses }) => [state, uses.map(({ updates }) => updates)]),
      [
        ['unknown', []],
        ['used', [3]],
        ['deferred', []],
        ['unused', []],
        ['used', [3]],
        ['doubt', []],
        ['doubt', []]
      ]
    )
    assert.deepEqual(
      segments.map(({ record, inputs }) => [record, ...inputs]),
      [1, 3, 5, 6, 8, 9, 11].map((record, i) => [
        record,
        ...[
          [0, 1],
          [1, 2],
          [2, 3],
          [3, 4],
          [4, 6],
          [6, 7],
          [7, 8]
        ][i]
      ])
    )
    assert.ok(segments.every(one => one.run.origin === 'me' && one.run.incarnation === 1))
    assert.deepEqual(unrecorded, [])
    assert.equal(isWhole, false)
    assert.equal(audited(journal(1)).isWhole, true)
    assert.equal(audited([]).isWhole, false)
    assert.equal(audited(journal(1).toSpliced(2, 2)).isWhole, false)
  })

  it('knows nothing of earlier segments without headers', () => {
    const { segments } = auditJournal('me', journal(), 1, { id: p3, headers: [] }, new ContributorTable())
    const states = segments.map(({ state }) => state)
    assert.deepEqual(states, ['unknown', 'unknown', 'deferred', 'unknown', 'unknown', 'doubt', 'doubt'])
  })

  it('lists every predictor that has used a segment', () => {
    const [, second] = audited(journal(), 1, 1, 1).segments
    assert.deepEqual(
      second.uses.map(({ updates }) => updates),
      [2, 3]
    )
  })

  it('has no candidates in epochs that the node has dropped', () => {
    const states = audited(journal(), 7).segments.map(({ state }) => state)
    assert.deepEqual(states, ['unknown', 'used', 'unused', 'unused', 'used', 'unused', 'unused'])
    const atHead = audited(journal(), 6).segments.map(({ state }) => state)
    assert.deepEqual(atHead, ['unknown', 'used', 'deferred', 'unused', 'used', 'doubt', 'doubt'])
  })

  it('lacks segments that batches contain, where it has all epochs', () => {
    const found = (records: readonly JournalRecord[], inThird: number, inSecond: number) =>
      audited(records, 1, inThird, inSecond).unrecorded.map(({ predictor, segments }) => [predictor.updates, segments])
    assert.deepEqual(found(journal(), 3, 1), [])
    assert.deepEqual(found(journal(), 5, 2), [
      [3, 2],
      [2, 1]
    ])
    // Without the epoch at p1, it is not known what was recorded before the next one.
    assert.deepEqual(found(journal().toSpliced(2, 2), 5, 2), [[3, 2]])
    // Without the epoch at p2, the one at p3 is the first of which all is known.
    assert.deepEqual(found(journal().toSpliced(7, 3), 5, 2), [])
    assert.deepEqual(found([], 5, 2), [])
  })
})

describe('lineages', () => {
  it('are joined to that of the best predictor', () => {
    const table = new ContributorTable()
    const { headers } = lineageOf(1, 1, table)
    const joined = joinLineages([
      { id: p2, headers: [headers[1]] },
      { id: p3, headers: [headers[0]] },
      { id: p1, headers: [] }
    ])
    assert.deepEqual(joined, { id: p3, headers })
    assert.equal(joinLineages([]), undefined)
  })

  it('name the runs of other nodes with all their segments', () => {
    const table = new ContributorTable()
    const others = otherContributors(lineageOf(1, 1, table), new Set(['me']), table)
    assert.deepEqual(
      others.map(({ run: { origin }, segments }) => [origin, segments]),
      [['x', 3]]
    )
  })
})

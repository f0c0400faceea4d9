/** Audit of state directories: which inputs of which stream the best lineage among them has used, and how often. */
import {
  type AuditedLineage,
  type AuditedSegment,
  auditJournal,
  joinLineages,
  otherContributors
} from '../admb/core/audit.js'
import type { Ranges } from '../admb/core/journal.js'
import { type JournalRecord, type PredictorId, sameId } from '../admb/index.js'
import { ContributorTable } from '../admb/state/coverage.js'
import { decodeLineage } from '../admb/wire/saved.js'
import type { Store } from '../storage/index.js'
import { type Interval, intervalsOf, type Mark, sameRun } from './audit-intervals.js'
import type { InputPiece } from './input-log.js'
import type { SavedProgress } from './thread-messages.js'

/** A stopped peer. */
export interface AuditedPeer {
  readonly id: string
  readonly dir: string
  readonly store: Store
}

/** Inputs of a run, by the number of their row in the stream, or of the input for those that cannot be read again. [first, end) */
export interface StreamAudit {
  readonly incarnation: number
  readonly nonce: number
  /** The file or URL; null for inputs of requests and of streams that cannot be read again. */
  readonly data: string | null
  /** Used by this run. */
  readonly used: Ranges
  readonly twice: Ranges
  /** In no batch, and lost. */
  readonly unused: Ranges
  /** In a sum that a neighbour may hold. The next update decides. */
  readonly doubt: Ranges
  /** Held for a later batch, or to be learned again. */
  readonly deferred: Ranges
  /** Possibly in a batch before the oldest header. */
  readonly unknown: Ranges
}

export interface PeerAudit {
  readonly id: string
  readonly dir: string
  readonly predictor: PredictorId
  /** Whether its predictor is on the audited lineage. */
  readonly onLineage: boolean
  /** Whether its journal has been kept since its first run. */
  readonly journalWhole: boolean
  readonly runs: readonly StreamAudit[]
  /** Rows that were read and are in no record: they do not fit the model, or are lost. Empty unless the journal is whole. */
  readonly unrecorded: readonly { readonly data: string; readonly rows: Ranges }[]
}

export interface AuditReport {
  /** The best predictor of the directories. */
  readonly predictor: PredictorId
  /** Updates whose headers are known; `whole` if there are none before. */
  readonly lineage: { readonly from: number; readonly to: number; readonly whole: boolean }
  readonly peers: readonly PeerAudit[]
  /** Runs on the lineage whose directories were not given. */
  readonly others: readonly { readonly id: string; readonly incarnation: number; readonly nonce: number }[]
  /** Each is a line. */
  readonly violations: readonly string[]
}

/** @returns undefined if none of the directories holds a predictor; @throws FrameError, errors of the stores */
export async function audit(peers: readonly AuditedPeer[]): Promise<AuditReport | undefined> {
  const table = new ContributorTable()
  const states: (AuditedPeer & PeerState)[] = []
  for (const peer of peers) {
    const state = await readState(peer.store, table)
    if (state !== undefined) states.push({ ...peer, ...state })
  }
  const lineage = joinLineages(states.flatMap(({ heads }) => heads))
  if (lineage === undefined) return undefined
  const violations: string[] = []
  const audits = states.map(state => auditPeer(state, lineage, table, violations))
  const { headers, id } = lineage
  const oldest = headers.at(-1)
  return {
    predictor: id,
    lineage: {
      from: oldest?.id.updates ?? id.updates,
      to: id.updates,
      whole: (oldest?.parent.updates ?? id.updates) === 0
    },
    peers: audits,
    others: otherContributors(lineage, new Set(states.map(state => state.id)), table).map(({ run }) => {
      const { origin, incarnation, nonce } = run
      return { id: origin, incarnation, nonce }
    }),
    violations
  }
}

interface PeerState {
  readonly records: readonly (JournalRecord & { readonly pieces?: readonly InputPiece[] })[]
  readonly liveFrom: number
  /** The last one is that of the checkpoint. */
  readonly heads: readonly AuditedLineage[]
  readonly tail: SavedProgress | undefined
}

async function readState(store: Store, table: ContributorTable): Promise<PeerState | undefined> {
  const { records, liveFrom, heads, tail } = await store.history()
  if (heads.length === 0) return undefined
  return {
    records: records.map(text => JSON.parse(text) as PeerState['records'][number]),
    liveFrom,
    heads: heads.map(head => decodeLineage(head, table)),
    tail: tail === undefined ? undefined : (JSON.parse(tail) as SavedProgress)
  }
}

function auditPeer(
  state: AuditedPeer & PeerState,
  lineage: AuditedLineage,
  table: ContributorTable,
  violations: string[]
): PeerAudit {
  const { id, dir, records, liveFrom, heads, tail } = state
  const { segments, unrecorded, isWhole } = auditJournal(id, records, liveFrom, lineage, table)
  for (const { run, predictor, segments: count } of unrecorded) {
    violations.push(
      `update ${predictor.updates} used ${count} segments of ${id} in run ${run.incarnation} that its journal lacks`
    )
  }
  const runs: StreamAudit[] = []
  const gaps: PeerAudit['unrecorded'][number][] = []
  for (const [stream, marks] of marksByStream(segments, records)) {
    const data = stream === '' ? null : dataOf(stream)
    const intervals = intervalsOf(marks)
    for (const interval of intervals) {
      if (interval.uses.length > 1) violations.push(twiceLine(id, data, interval))
    }
    runs.push(...runsOf(data, marks, intervals))
    const end = tail?.stream === stream ? (tail.position ?? 0) : 0
    if (isWhole && data !== null) gaps.push({ data, rows: gapsIn(intervals, end) })
  }
  const predictor = (heads.at(-1) as AuditedLineage).id
  return {
    id,
    dir,
    predictor,
    onLineage: sameId(predictor, lineage.id) || lineage.headers.some(({ parent }) => sameId(parent, predictor)),
    journalWhole: isWhole,
    runs,
    unrecorded: gaps.filter(({ rows }) => rows.length > 0)
  }
}

/** The inputs of all segments by their stream; '' for those that cannot be read again. */
function marksByStream(segments: readonly AuditedSegment[], records: PeerState['records']): Map<string, Mark[]> {
  const marks = new Map<string, Mark[]>()
  for (const segment of segments) {
    for (const { first, count, place, skip = 0, stream = '' } of records[segment.record].pieces ?? []) {
      const start = place === undefined ? first : place.rows + skip
      const mark = { first: start, end: start + count, segment }
      const key = place === undefined ? '' : stream
      const known = marks.get(key)
      if (known === undefined) marks.set(key, [mark])
      else known.push(mark)
    }
  }
  return marks
}

function runsOf(data: string | null, marks: readonly Mark[], intervals: readonly Interval[]): StreamAudit[] {
  const runs = new Map(marks.map(({ segment: { run } }) => [`${run.incarnation}.${run.nonce}`, run]))
  return [...runs.values()].map(({ incarnation, nonce }) => {
    const isOwn = ({ run }: AuditedSegment) => sameRun(run, { incarnation, nonce })
    const select = (keep: (interval: Interval) => boolean): Ranges => {
      const ranges: number[] = []
      for (const interval of intervals) {
        if (!keep(interval)) continue
        if (ranges.at(-1) === interval.first) ranges[ranges.length - 1] = interval.end
        else ranges.push(interval.first, interval.end)
      }
      return ranges
    }
    // An input that no run has used is shown with the run that learned it first.
    const inState = (state: Interval['state']) =>
      select(interval => interval.state === state && isOwn(interval.segments[0]))
    return {
      incarnation,
      nonce,
      data,
      used: select(({ segments }) => segments.some(segment => segment.uses.length > 0 && isOwn(segment))),
      twice: select(({ uses, segments }) => uses.length > 1 && segments.some(isOwn)),
      unused: inState('unused'),
      doubt: inState('doubt'),
      deferred: inState('deferred'),
      unknown: inState('unknown')
    }
  })
}

function twiceLine(id: string, data: string | null, { first, end, uses }: Interval): string {
  const inputs = data === null ? `inputs ${first} to ${end - 1}` : `rows ${first} to ${end - 1} of ${data}`
  const updates = uses.map(({ updates: number }) => number).sort((a, b) => a - b)
  return `${inputs} of ${id} are used ${uses.length} times, by the updates ${updates.join(', ')}`
}

/** The numbers below `end` that are in no interval. */
function gapsIn(intervals: readonly Interval[], end: number): Ranges {
  const gaps: number[] = []
  let next = 0
  for (const interval of intervals) {
    if (interval.first > next) gaps.push(next, interval.first)
    next = Math.max(next, interval.end)
  }
  if (end > next) gaps.push(next, end)
  return gaps
}

function dataOf(stream: string): string {
  return (JSON.parse(stream) as { data: string }).data
}

/**
 * Audit: compares the journals of nodes with the headers of one lineage. It trusts neither the
 * nodes' ledgers nor their counters: the header of an update covers the first segments of each
 * contributor's list at the parent, and the journal holds that list.
 */
import { type Contributor, type ContributorTable, type Coverage, entriesOf, segmentsOf } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import { compareIds, idKey, type PredictorId } from '../state/predictor-id.js'
import type { JournalRecord, Ranges } from './journal.js'

/** Headers from a predictor back to the oldest that is known, newest first. */
export interface AuditedLineage {
  readonly id: PredictorId
  readonly headers: readonly Header[]
}

/**
 * - `used`: at least one batch contains the segment;
 * - `doubt`: it is on the list of the newest predictor, so a neighbour may hold a sum with it;
 * - `deferred`: its node holds it for a later batch, or to learn it again;
 * - `unknown`: it may be in a batch before the oldest header;
 * - `unused`: none of these.
 */
export type SegmentState = 'used' | 'doubt' | 'deferred' | 'unknown' | 'unused'

export interface AuditedSegment {
  /** Position of its record in the journal. */
  readonly record: number
  /** The run that closed it. */
  readonly run: Contributor
  readonly inputs: Ranges
  readonly state: SegmentState
  /** The predictors whose batches contain it. */
  readonly uses: readonly PredictorId[]
}

/** Segments in a predictor's batch that the journal lacks, although it contains the whole run. */
export interface Unrecorded {
  readonly run: Contributor
  readonly predictor: PredictorId
  readonly segments: number
}

export interface AuditedJournal {
  readonly segments: readonly AuditedSegment[]
  readonly unrecorded: readonly Unrecorded[]
  /** Whether the journal contains every epoch since the node's first run. */
  readonly isWhole: boolean
}

type EpochRecord = Extract<JournalRecord, { kind: 'epoch' }>
/** A segment on a list whose record has been deleted. */
const DELETED = -1

interface AuditedEpoch {
  readonly record: EpochRecord
  /**
   * The segments on its list, as positions of their records in the journal: numbers start again
   * when a run recovers none.
   */
  readonly list: number[]
  readonly open: readonly number[]
}

/** The best of the predictors, with the headers of all of them that lead to it. */
export function joinLineages(heads: readonly AuditedLineage[]): AuditedLineage | undefined {
  if (heads.length === 0) return undefined
  const { id } = heads.reduce((best, head) => (compareIds(head.id, best.id) > 0 ? head : best))
  const known = new Map(heads.flatMap(({ headers }) => headers).map(header => [idKey(header.id), header]))
  const headers: Header[] = []
  for (let next = known.get(idKey(id)); next !== undefined; next = known.get(idKey(next.parent))) headers.push(next)
  return { id, headers }
}

/**
 * Finds the uses of a node's segments.
 * @param records in order, possibly without the oldest epochs
 * @param liveFrom number of the first epoch that the node itself has not dropped
 * @param table the contributors to which the headers refer
 */
export function auditJournal(
  origin: string,
  records: readonly JournalRecord[],
  liveFrom: number,
  { id: head, headers }: AuditedLineage,
  table: ContributorTable
): AuditedJournal {
  const epochs = epochsOf(records)
  const children = new Map(headers.map(header => [idKey(header.parent), header]))
  const uses = new Map<number, PredictorId[]>()
  for (const { record, list } of epochs) {
    const child = children.get(idKey(record.id))
    if (child === undefined) continue
    for (const segment of list.slice(0, coveredBy(child.coverage, runOf(origin, record), table))) {
      uses.set(segment, [...(uses.get(segment) ?? []), child.id])
    }
  }
  const live = epochs.filter(({ record }) => record.number >= liveFrom)
  const candidates = undecided(live, key => key === idKey(head) || children.has(key))
  // Runs that held the newest predictor: sums of each of them may still be used.
  const atHead = live.filter(({ record }) => idKey(record.id) === idKey(head))
  const doubtful = new Set(atHead.flatMap(({ list }) => list))
  const oldest = headers.at(-1)?.parent.updates ?? head.updates
  const state = (segment: number, epoch: EpochRecord): SegmentState => {
    if (uses.has(segment)) return 'used'
    if (doubtful.has(segment)) return 'doubt'
    if (candidates.has(segment)) return 'deferred'
    return epoch.id.updates < oldest ? 'unknown' : 'unused'
  }
  const byNumber = new Map(epochs.map(({ record }) => [record.number, record]))
  const segments: AuditedSegment[] = []
  for (const [i, record] of records.entries()) {
    const epoch = record.kind === 'segment' ? byNumber.get(record.epoch) : undefined
    if (record.kind !== 'segment' || epoch === undefined) continue
    const { inputs } = record
    segments.push({ record: i, run: runOf(origin, epoch), inputs, state: state(i, epoch), uses: uses.get(i) ?? [] })
  }
  const isWhole = epochs.length > 0 && epochs.every(({ record }, i) => record.number === i + 1)
  return { segments, unrecorded: unrecordedIn(origin, epochs, headers, table), isWhole }
}

/** The runs of other nodes in the headers, with the number of their segments. */
export function otherContributors(
  { headers }: AuditedLineage,
  origins: ReadonlySet<string>,
  table: ContributorTable
): readonly { readonly run: Contributor; readonly segments: number }[] {
  const counts = new Map<number, number>()
  for (const { coverage } of headers) {
    for (const [index, segments] of entriesOf(coverage)) counts.set(index, (counts.get(index) ?? 0) + segments)
  }
  return [...counts]
    .map(([index, segments]) => ({ run: table.contributor(index), segments }))
    .filter(({ run }) => !origins.has(run.origin))
}

function epochsOf(records: readonly JournalRecord[]): AuditedEpoch[] {
  const epochs = new Map<number, AuditedEpoch>()
  const latest = new Map<number, number>()
  // Records that have been deleted are not on the list, but count in it.
  const found = (number: number) => latest.get(number) ?? DELETED
  for (const [i, record] of records.entries()) {
    if (record.kind === 'epoch') {
      epochs.set(record.number, { record, list: record.carried.map(found), open: record.open.map(found) })
    } else if (record.kind === 'segment') {
      latest.set(record.number, i)
      epochs.get(record.epoch)?.list.push(i)
    }
  }
  return [...epochs.values()]
}

function runOf(origin: string, { incarnation, nonce }: EpochRecord): Contributor {
  return { origin, incarnation, nonce }
}

function coveredBy(coverage: Coverage, run: Contributor, table: ContributorTable): number {
  return segmentsOf(coverage, table.indexOf(run))
}

/**
 * Segments whose use the node has not decided: as in `Ledger`, the newest epoch on the lineage has
 * decided about earlier ones.
 */
function undecided(live: readonly AuditedEpoch[], isOnLineage: (key: string) => boolean): ReadonlySet<number> {
  const newest = live.findLastIndex(({ record }) => isOnLineage(idKey(record.id)))
  return new Set(live.slice(Math.max(0, newest)).flatMap(({ open, list }) => [...open, ...list]))
}

/** Batches that contain segments of this node that its journal lacks. */
function unrecordedIn(
  origin: string,
  epochs: readonly AuditedEpoch[],
  headers: readonly Header[],
  table: ContributorTable
): Unrecorded[] {
  const found: Unrecorded[] = []
  const lists = new Map(epochs.map(({ record, list }) => [epochKey(runOf(origin, record), record.id), list.length]))
  const since = completeSince(origin, epochs)
  for (const { id, parent, coverage } of headers) {
    for (const [index, covered] of entriesOf(coverage)) {
      const run = table.contributor(index)
      const first = run.origin === origin ? since.get(runKey(run)) : undefined
      if (first === undefined || parent.updates < first) continue
      const segments = covered - (lists.get(epochKey(run, parent)) ?? 0)
      if (segments > 0) found.push({ run, predictor: id, segments })
    }
  }
  return found
}

/**
 * The number of updates from which on the journal contains all epochs of a run. The predictors of a
 * run only get better.
 */
function completeSince(origin: string, epochs: readonly AuditedEpoch[]): ReadonlyMap<string, number> {
  const since = new Map<string, number>()
  for (const [i, { record }] of epochs.entries()) {
    const key = runKey(runOf(origin, record))
    const follows = record.number === 1 || epochs[i - 1]?.record.number === record.number - 1
    if (!since.has(key) || !follows) since.set(key, follows ? 0 : record.id.updates)
  }
  return since
}

function runKey({ origin, incarnation, nonce }: Contributor): string {
  return `${origin}#${incarnation}.${nonce}`
}

function epochKey(run: Contributor, id: PredictorId): string {
  return `${runKey(run)} ${idKey(id)}`
}

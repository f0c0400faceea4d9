/** Intervals of inputs that are in the same segments. */
import type { AuditedSegment, SegmentState } from '../admb/core/audit.js'
import type { Contributor, PredictorId } from '../admb/index.js'

/** Inputs [first, end) of a segment. */
export interface Mark {
  readonly first: number
  readonly end: number
  readonly segment: AuditedSegment
}

export interface Interval {
  readonly first: number
  readonly end: number
  /** The segments that contain it, in the order of the journal. */
  readonly segments: readonly AuditedSegment[]
  /** The predictors whose batches contain it, once for each use. */
  readonly uses: readonly PredictorId[]
  readonly state: SegmentState
}

/** The most hopeful state of the segments of an input is that of the input. */
const STATES: readonly SegmentState[] = ['used', 'doubt', 'deferred', 'unknown', 'unused']

/** Divides the inputs into intervals, in order. */
export function intervalsOf(marks: readonly Mark[]): Interval[] {
  const starts = [...marks].sort((a, b) => a.first - b.first)
  const bounds = [...new Set(marks.flatMap(({ first, end }) => [first, end]))].sort((a, b) => a - b)
  const intervals: Interval[] = []
  let active: Mark[] = []
  let next = 0
  for (let i = 0; i + 1 < bounds.length; i++) {
    const [first, end] = [bounds[i], bounds[i + 1]]
    active = active.filter(mark => mark.end > first)
    while (next < starts.length && starts[next].first <= first) active.push(starts[next++])
    if (active.length === 0) continue
    const segments = active.map(({ segment }) => segment).sort((a, b) => a.record - b.record)
    const uses = segments.flatMap(segment => segment.uses)
    const state = STATES.find(one => segments.some(segment => segment.state === one)) as SegmentState
    intervals.push({ first, end, segments, uses, state })
  }
  return merged(intervals)
}

/** Joins neighbouring intervals that differ only in which segments of a run contain them, so that a report stays short. */
function merged(intervals: readonly Interval[]): Interval[] {
  const joined: Interval[] = []
  for (const interval of intervals) {
    const last = joined.at(-1)
    if (last && last.end === interval.first && isAlike(last, interval)) {
      joined[joined.length - 1] = { ...last, end: interval.end }
    } else joined.push(interval)
  }
  return joined
}

function isAlike(a: Interval, b: Interval): boolean {
  if (a.segments.length !== b.segments.length || a.uses.length !== b.uses.length || a.state !== b.state) return false
  const isRepeated = a.uses.length > 1 && a.uses.some((id, i) => id !== b.uses[i])
  return !isRepeated && a.segments.every((segment, i) => isSimilar(segment, b.segments[i]))
}

function isSimilar(a: AuditedSegment, b: AuditedSegment): boolean {
  return sameRun(a.run, b.run) && a.uses.length === b.uses.length
}

/** Whether these are the same run of one node. */
export function sameRun(a: Omit<Contributor, 'origin'>, b: Omit<Contributor, 'origin'>): boolean {
  return a.incarnation === b.incarnation && a.nonce === b.nonce
}

/**
 * The journal of a node's own segments. It says which inputs each segment contains and on which
 * lists it was, so that a later run can tell from the headers of any lineage which inputs have been
 * used. A record must be durable before a frame with its segment leaves the node.
 *
 * With a journal, the segments and epochs of earlier runs are recovered. Their inputs are learned
 * again, but they remain the same contributions. A segment that contains such inputs refers to the
 * recovered segment, and counts as used on every lineage that used that one. The same holds within
 * a run for inputs that a jump to another lineage has left unused.
 */

import type { Layout } from '../../learning/types.js'
import { type CompactBlock, forEachElement } from '../../numeric/sums.js'
import type { ContributorTable } from '../state/coverage.js'
import type { PredictorId } from '../state/predictor-id.js'
import type { LazyGrid } from '../state/rounding.js'
import { FrameError } from '../wire/bytes.js'
import { decodeUnsent, type KeptUnsent } from '../wire/unsent.js'

/** A record; records are in chronological order. Segments and epochs are numbered 1, 2, 3, … */
export type JournalRecord =
  /** The node switches to a predictor. */
  | {
      readonly kind: 'epoch'
      readonly number: number
      readonly id: PredictorId
      readonly incarnation: number
      readonly nonce: number
      /** Numbers of the segments with which its list begins. */
      readonly carried: readonly number[]
      /** Numbers of the other segments that its lineage has not used. */
      readonly open: readonly number[]
      /** With a budget: exponents of the predictor's steps. */
      readonly steps?: readonly number[]
      /** With a budget: number of an earlier epoch. */
      readonly after?: number
      /** Segments with a sum that the lineage has used since `after`, and the epochs of the batches: [segment, epoch, …]. */
      readonly used?: readonly number[]
    }
  /** A segment is appended to the list of the last epoch. */
  | {
      readonly kind: 'segment'
      readonly number: number
      readonly epoch: number
      /** Numbers of its inputs, as intervals [first, end, first, end, …]. */
      readonly inputs: readonly number[]
      /** Number of the earlier run's segment that contains these inputs. */
      readonly of?: number
    }
  /** Epochs before this number, and their segments, are no longer needed. */
  | { readonly kind: 'dropped'; readonly before: number }
  /** Encoded `KeptUnsent`, which replaces earlier ones. */
  | { readonly kind: 'unsent'; readonly bytes: Uint8Array }

/** Epochs and segments that earlier runs recorded. */
export interface Recovered {
  /** Oldest first. */
  readonly epochs: readonly Epoch[]
  /** Segments of these epochs. */
  readonly segments: readonly Segment[]
  /** Number of the next segment. */
  readonly nextSegment: number
  readonly unsent: KeptUnsent | undefined
  /** With a budget: inputs in segments whose progress is not in `unsent`. */
  readonly owed: Ranges
}

/**
 * Reads the records of earlier runs.
 * @param layout of sums, if there is a budget
 * @throws FrameError if they contradict each other
 */
export function recover(
  records: readonly JournalRecord[],
  self: string,
  table: ContributorTable,
  layout?: Layout
): Recovered {
  const segments = new Map<number, Segment>()
  let unsent: KeptUnsent | undefined
  const lists = new Map<number, { readonly record: JournalRecord & { kind: 'epoch' }; readonly list: Segment[] }>()
  const found = (number: number): Segment => {
    // The record of a segment that is no longer needed may have been deleted, but later lists still
    // contain its number.
    const segment = segments.get(number) ?? recovered(number, [], 0, undefined)
    segments.set(number, segment)
    return segment
  }
  for (const record of records) {
    if (record.kind === 'epoch') lists.set(record.number, { record, list: record.carried.map(found) })
    else if (record.kind === 'segment') {
      const epoch = lists.get(record.epoch)
      if (epoch === undefined || segments.has(record.number)) {
        throw new FrameError(`segment ${record.number} of the journal is out of place`)
      }
      const of = record.of === undefined ? undefined : found(record.of)
      const segment = recovered(record.number, record.inputs, epoch.record.id.updates, of)
      segments.set(record.number, segment)
      epoch.list.push(segment)
      for (let one = of; one !== undefined; one = one.of) one.remaining = without(one.remaining, record.inputs)
    } else if (record.kind === 'unsent' && layout) unsent = decodeUnsent(record.bytes, layout)
  }
  const drafts = new Map<number, Omit<Epoch, 'settled'>>()
  for (const { record, list } of lists.values()) {
    const { number, id, incarnation, nonce, carried, open, steps } = record
    drafts.set(number, {
      number,
      id,
      contributor: table.indexOf({ origin: self, incarnation, nonce }),
      segments: list,
      carried: carried.length,
      open: open.map(found),
      used: 0,
      until: 0,
      held: { number, grid: steps?.map(exponent => Int8Array.of(exponent)) }
    })
  }
  if (unsent) restoreSums(unsent, segments, drafts)
  // `Settled` drops segments without a sum.
  const epochs = new Map<number, Epoch>()
  for (const [number, draft] of drafts) {
    const { after = 0, used = [] } = lists.get(number)?.record ?? {}
    const settled: SettledEntry[] = []
    for (let i = 0; i < used.length; i += 2) {
      const held = drafts.get(used[i + 1])?.held
      if (held) settled.push([found(used[i]), held])
    }
    epochs.set(number, { ...draft, settled: (epochs.get(after)?.settled ?? Settled.none).with(settled) })
  }
  const all = [...segments.values()]
  return {
    epochs: [...epochs.values()],
    segments: all,
    nextSegment: Math.max(0, ...segments.keys()) + 1,
    unsent,
    owed: layout ? owedOf(all, unsent) : []
  }
}

/** Gives segments the sums that the journal has kept, which may still return to the residual. */
function restoreSums(
  { sums }: KeptUnsent,
  segments: ReadonlyMap<number, Segment>,
  epochs: ReadonlyMap<number, Omit<Epoch, 'settled'>>
): void {
  for (const { number, place, sum } of sums) {
    const segment = segments.get(number)
    const home = [...epochs.values()].find(({ segments, carried }) => segments.indexOf(segment as Segment) >= carried)
    const held = place > 0 ? epochs.get(place)?.held : undefined
    if (segment === undefined || home?.held.grid === undefined || (place > 0 && held === undefined)) continue
    segment.sum = sum
    segment.elements = sizeOfSum(sum)
    segment.grid = home.held.grid
    segment.taken = place < 0 ? RETURNED : held
  }
}

/** Inputs in segments, other than those whose progress the node had when it stored what is unsent. */
function owedOf(segments: readonly Segment[], unsent: KeptUnsent | undefined): Ranges {
  const inputsOf = (some: readonly Segment[]) => some.reduce<Ranges>((all, { inputs }) => union(all, inputs), [])
  const { segment: last = 0, owed = [] } = unsent ?? {}
  return without(inputsOf(segments), without(inputsOf(segments.filter(({ number }) => number <= last)), owed))
}

function recovered(number: number, inputs: Ranges, updates: number, of: Segment | undefined): Segment {
  let count = 0
  for (let i = 0; i < inputs.length; i += 2) count += inputs[i + 1] - inputs[i]
  return {
    number,
    sum: undefined,
    elements: 0,
    taken: undefined,
    grid: undefined,
    count,
    period: Number.NEGATIVE_INFINITY,
    updates,
    inputs,
    of,
    remaining: inputs,
    isRepeated: true,
    isRecovered: true,
    used: false
  }
}

/** Consecutive own gradients that were closed together. */
export interface Segment {
  /** Number in the journal. */
  readonly number: number
  /** Sum of its gradients; undefined if it can no longer be carried over, or is recovered. */
  sum: readonly CompactBlock[] | undefined
  /** With a budget: number of elements of the sum that differ from 0. */
  elements: number
  /**
   * With a budget: grid to which its sum is rounded outside the residual, which is the grid of the batch that has used it. Undefined,
   * while a batch can still use it, for its own grid.
   */
  taken: HeldGrid | undefined
  /** Grid to which the sum was rounded; undefined without one, and without a sum. */
  grid: LazyGrid | undefined
  readonly count: number
  /** Period in which the segment was closed; −∞ if it cannot be carried over. */
  period: number
  /** Number of updates of the predictor at which the gradients were taken. */
  readonly updates: number
  /** Numbers of its inputs; empty without a journal. */
  readonly inputs: Ranges
  /** The earlier segment whose inputs these are. */
  readonly of: Segment | undefined
  /** Inputs that must be learned again; empty while the segment itself can be used. */
  remaining: Ranges
  /** Whether its inputs are learned again: it is recovered, or can no longer be carried over. */
  isRepeated: boolean
  /** Whether an earlier run closed it. */
  readonly isRecovered: boolean
  /** Whether the lineage of the current predictor has used the segment. */
  used: boolean
}

/**
 * The time during which one predictor was held in a run, with its list: segments carried over, then
 * segments closed, oldest first.
 */
export interface Epoch {
  /** Number in the journal. */
  readonly number: number
  readonly id: PredictorId
  /** Index of this node's run in coverages. */
  readonly contributor: number
  readonly segments: readonly Segment[]
  /** Number of segments that were carried over. */
  readonly carried: number
  /**
   * Segments that the lineage had not used and that are not on the list: those in doubt, and those
   * whose inputs are learned again, until a batch of the lineage has used the inputs.
   */
  readonly open: readonly Segment[]
  /** Number of gradients of the run that the lineage had used. 0 in recovered epochs. */
  readonly used: number
  /** Period in which it ended; 0 in recovered epochs. */
  readonly until: number
  readonly held: HeldGrid
  /** Segments with a sum that the lineage has used, and the grid of the batch with them. */
  readonly settled: Settled
}

/** Grid of an epoch's predictor; undefined without one, in recovered epochs, and when no segment of the list has a sum any more. */
export interface HeldGrid {
  /** Number of the epoch. */
  readonly number: number
  grid: LazyGrid | undefined
}

/** Stands for `Rounding.returned`: all of a sum is in the residual. */
export const RETURNED: HeldGrid = { number: -1, grid: undefined }

type SettledEntry = readonly [segment: Segment, held: HeldGrid]

/**
 * Segments with a sum that a lineage has used, and the grid of the batch with them. Those of a child share the entries of its
 * parent, as there are hundreds of them at each of thousands of updates a second.
 */
export class Settled {
  static readonly none = new Settled(undefined, [])
  /** Number of earlier ones that are read to find all entries. */
  readonly #depth: number

  private constructor(
    readonly before: Settled | undefined,
    readonly added: readonly SettledEntry[]
  ) {
    this.#depth = before === undefined ? 0 : before.#depth + 1
  }

  /** With more segments, of which it contains none. */
  with(added: readonly SettledEntry[]): Settled {
    if (added.length === 0) return this
    return this.#depth < MAX_DEPTH ? new Settled(this, added) : new Settled(undefined, [...this.#entries, ...added])
  }

  /** All segments that still have a sum. */
  get all(): Map<Segment, HeldGrid> {
    return new Map(this.#entries)
  }

  get #entries(): readonly SettledEntry[] {
    const parts: (readonly SettledEntry[])[] = []
    for (let at: Settled | undefined = this; at; at = at.before) parts.push(at.added)
    return parts.reverse().flatMap(entries => entries.filter(([{ sum }]) => sum !== undefined))
  }
}

const MAX_DEPTH = 64

/** Number of elements of a sum that differ from 0. */
export function sizeOfSum(sum: readonly CompactBlock[]): number {
  let size = 0
  for (const block of sum) forEachElement(block, () => size++)
  return size
}

/** Whether the lineage used the segment, or an earlier one that has the same inputs. */
export function isUsed(segment: Segment): boolean {
  return segment.used || (segment.of !== undefined && isUsed(segment.of))
}

/** Whether the segment, or an earlier one that has the same inputs, is in the set. */
export function isAmong(segment: Segment, segments: ReadonlySet<Segment>): boolean {
  return segments.has(segment) || (segment.of !== undefined && isAmong(segment.of, segments))
}

/** Number of gradients of an open segment that are neither available nor learned again yet. */
export function waitingIn({ isRepeated, remaining, count }: Segment): number {
  return isRepeated ? sizeOf(remaining) : count
}

/** Sets of input numbers: sorted, disjoint, half-open intervals [first, end, first, end, …]. */
export type Ranges = readonly number[]

export const NO_INPUTS: Ranges = []

/** The union with [first, end). */
export function withRange(ranges: Ranges, first: number, end: number): Ranges {
  const merged: number[] = []
  let [from, to] = [first, end]
  let isPlaced = false
  for (let i = 0; i < ranges.length; i += 2) {
    const [a, b] = [ranges[i], ranges[i + 1]]
    if (b < from) merged.push(a, b)
    else if (a > to) {
      if (!isPlaced) merged.push(from, to)
      isPlaced = true
      merged.push(a, b)
    } else {
      from = Math.min(from, a)
      to = Math.max(to, b)
    }
  }
  if (!isPlaced) merged.push(from, to)
  return merged
}

/** The numbers in `ranges` that are not in `removed`. */
export function without(ranges: Ranges, removed: Ranges): Ranges {
  let rest = ranges
  for (let i = 0; i < removed.length; i += 2) rest = withoutRange(rest, removed[i], removed[i + 1])
  return rest
}

export function union(ranges: Ranges, others: Ranges): Ranges {
  let all = ranges
  for (let i = 0; i < others.length; i += 2) all = withRange(all, others[i], others[i + 1])
  return all
}

function withoutRange(ranges: Ranges, first: number, end: number): Ranges {
  const rest: number[] = []
  for (let i = 0; i < ranges.length; i += 2) {
    const [a, b] = [ranges[i], ranges[i + 1]]
    if (a < first) rest.push(a, Math.min(b, first))
    if (b > end) rest.push(Math.max(a, end), b)
  }
  return rest.length === ranges.length && rest.every((value, i) => value === ranges[i]) ? ranges : rest
}

export function isIn(ranges: Ranges, number: number): boolean {
  for (let i = 0; i < ranges.length; i += 2) if (ranges[i] <= number && number < ranges[i + 1]) return true
  return false
}

export function sizeOf(ranges: Ranges): number {
  let size = 0
  for (let i = 0; i < ranges.length; i += 2) size += ranges[i + 1] - ranges[i]
  return size
}

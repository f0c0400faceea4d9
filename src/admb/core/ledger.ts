/**
 * A node's own gradients. While the node holds one predictor (an epoch), its gradients form an
 * ordered list of segments. A segment is closed whenever a sum is sent, so every sum in the network
 * covers a prefix of the list. When the node switches to another predictor, the headers on that
 * predictor's lineage determine which segments have been used; the others are carried over to the
 * next epoch's list unless they are too old. No gradient is used twice on any lineage. With `carry`
 * 0 every epoch starts empty, which is the published algorithm.
 *
 * With a journal the same holds across runs: epochs of earlier runs are recovered without vectors.
 * Inputs that the lineage has not used are learned again, and so are inputs of this run that a jump
 * to another lineage has left unused. Inputs in sums of an earlier run at the predictor that is
 * held now are in doubt, because neighbours may still hold these sums. They wait for the next
 * predictor.
 *
 * A ledger keeps in memory the epoch's sum, the open segment, and at most `maxRetainedSums` vectors
 * of segments that can still be carried over. A segment that cannot be carried over any more
 * remains in the epoch's sum only.
 */

import type { Sum } from '../../numeric/sums.js'
import { type Contributor, type Coverage, NO_COVERAGE } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import type { PredictorId } from '../state/predictor-id.js'
import type { LazyGrid } from '../state/rounding.js'
import {
  isAmong,
  isIn,
  isUsed,
  type JournalRecord,
  NO_INPUTS,
  type Ranges,
  type Recovered,
  type Segment,
  sizeOf,
  sizeOfSum,
  waitingIn,
  without,
  withRange
} from './journal.js'
import { JournalRecords } from './journal-records.js'
import { OwedProgress } from './owed-progress.js'
import type { OwnSum } from './own-sum.js'
import { type Decision, type History, isExpired, PastEpochs } from './past-epochs.js'
import { maxRetainedSums, RetainedSums } from './retained-sums.js'

const UNLIMITED: History = { updates: Number.POSITIVE_INFINITY, periods: Number.POSITIVE_INFINITY }

export interface LedgerOptions {
  readonly own: OwnSum
  /** S: number of periods for which unused segments are kept, 0 for none. */
  readonly carry: number
  /** Time for which epochs are remembered. @default always */
  readonly history?: History
  /** Whether inputs of segments that are too old are learned again. Requires a journal. */
  readonly repeats?: boolean
  /** Index of this node in coverages. */
  readonly contributor: number
  /** The initial predictor. */
  readonly id: PredictorId
  /** This run, if there is a journal. */
  readonly run?: Contributor
}

/** Numbers of own gradients, which add up to those of all inputs of the run. */
export interface GradientAccount {
  /** On the lineage of the predictor. */
  readonly used: number
  /** Available for the next update. */
  readonly available: number
  /** Unused, while their inputs wait to be learned again, or for the next predictor to decide. */
  readonly waiting: number
  /**
   * Neither used nor usable any more. Inputs of earlier runs that cannot be learned again are
   * included. The number falls when a predictor is adopted whose lineage has used some of them.
   */
  readonly discarded: number
  /** Computed again, so that others took their place. They are not part of the sum. */
  readonly repeated: number
}

/** The own sum: all closed segments of the epoch. With a grid, it consists of integers. */
export interface LocalSum {
  readonly sum: Sum
  readonly count: number
  readonly coverage: Coverage
}

export class Ledger {
  readonly #own: OwnSum
  readonly #carry: number
  readonly #history: History
  readonly #repeats: boolean
  readonly #contributors: readonly number[]
  /** Undefined without a journal. */
  readonly #records: JournalRecords | undefined
  #id: PredictorId
  #list: Segment[] = []
  /** Number of segments carried over into this epoch. */
  #carried = 0
  readonly #owed = new OwedProgress()
  /** Result of `close` until another segment is closed. */
  #closed: LocalSum | undefined
  #count = 0
  /** Segments that the lineage has not used and that are not on the list. */
  #open: readonly Segment[] = []
  /** Segments on lists of earlier runs at the current predictor. */
  #doubtful: ReadonlySet<Segment> = new Set()
  #openCount = 0
  #openInputs: Ranges = []
  #openOf: Segment | undefined
  #nextSegment = 1
  #epochNumber = 0
  #past: PastEpochs
  readonly #retained: RetainedSums
  /**
   * Number of gradients of this run, of those whose inputs it had learned before, and of those on
   * the lineage of the predictor.
   */
  #gradients = 0
  /** Number of gradients of this run before the epoch. */
  #gradientsBefore = 0
  #repeated = 0
  #used = 0
  /** Number of gradients never on a list, and of earlier inputs that cannot be learned again. */
  #dropped = 0
  #period = 0
  /** Period in which a segment was closed last. */
  #closedAt = 0

  constructor(options: LedgerOptions) {
    const { own, carry, history = UNLIMITED, repeats = false, contributor, id, run } = options
    this.#own = own
    this.#retained = new RetainedSums(carry, own)
    this.#carry = carry
    this.#history = history
    this.#repeats = repeats && run !== undefined
    this.#past = new PastEpochs(contributor)
    this.#contributors = [contributor]
    this.#records = run && new JournalRecords(run)
    this.#id = id
    if (run !== undefined) this.#begin(id, [])
  }

  /** Continues the journal of earlier runs. Call it at the initial predictor, before `added`. */
  recover({ epochs, segments, nextSegment, unsent, owed }: Recovered): void {
    if (this.#own.hasBudget) {
      if (unsent) this.#own.restoreUnsent(unsent)
      this.#owed.restore(owed)
      this.#retained.add(...segments.filter(({ sum }) => sum).sort((a, b) => a.number - b.number))
    }
    this.#past = new PastEpochs(this.#contributors[0], epochs)
    this.#nextSegment = nextSegment
    this.#epochNumber = this.#past.newest
    this.#records?.take()
    this.#begin(this.#id, segments)
  }

  /** The journal records since the last call. @param isStored without it, the record of what is unsent is left out */
  takeRecords(isStored = true): readonly JournalRecord[] {
    if (this.#records && isStored && this.#own.takeChanged()) {
      const segment = this.#nextSegment - 1
      this.#records.unsent({ ...this.#own.toKeep, segment, owed: this.#owed.all }, this.#retained.segments)
    }
    return this.#records?.take() ?? []
  }

  /** See `NodeInspection.owed`. */
  get owed(): Ranges {
    return this.#owed.inputs
  }

  /** Inputs to learn again now, [first, end); undefined if there are none, or all are in doubt. */
  get relearnable(): readonly [first: number, end: number] | undefined {
    const [first, end] = this.#relearnableSegment?.remaining ?? this.#owed.outside(this.#open)
    return first === undefined ? undefined : [first, this.#owed.endOf(first, end)]
  }

  get #relearnableSegment(): Segment | undefined {
    return this.#open.find(one => this.#isRelearnable(one))
  }

  /** With a budget: whether these inputs only count, because their gradients are already in what the node sends. */
  get onlyCounts(): boolean {
    const segment = this.#own.hasBudget ? this.#relearnableSegment : undefined
    return segment !== undefined && !this.#owed.has(segment.remaining[0])
  }

  /** With a budget: whether these inputs do not count, because a batch has used their count, but a crash has taken their gradients. */
  get onlyProgress(): boolean {
    return this.#owed.isAny && this.#relearnableSegment === undefined
  }

  /** Inputs [first, end) cannot be learned again. */
  forget(first: number, end: number): void {
    this.#owed.remove(first, end, false)
    for (const segment of this.#open) {
      const before = sizeOf(segment.remaining)
      segment.remaining = without(segment.remaining, [first, end])
      if (segment.isRecovered) this.#dropped += before - sizeOf(segment.remaining)
    }
  }

  /** Number of inputs that wait to be learned again, or whose new gradients are in doubt. */
  get waiting(): number {
    return this.#waiting(this.#open)
  }

  #waiting(segments: readonly Segment[]): number {
    return segments.reduce((sum, segment) => sum + (isUsed(segment) ? 0 : waitingIn(segment)), 0)
  }

  /** Segments with a sum of their own that a batch can still use, oldest first. */
  get pending(): readonly Segment[] {
    return this.#own.hasBudget ? [...this.#list, ...this.#reserved] : this.#list
  }

  /** With a budget: other segments that may return to the list, or whose use is in doubt. */
  get #reserved(): readonly Segment[] {
    return this.#open.filter(segment => !segment.isRepeated || this.#doubtful.has(segment))
  }

  /** Segments of this epoch, oldest first. */
  get segments(): readonly Segment[] {
    return this.#list
  }

  /** Number of own gradients of this epoch, including the open segment. */
  get count(): number {
    return this.#count + this.#openCount
  }

  /** The gradients of this run. An input that was learned again counts once. */
  get account(): GradientAccount {
    const [used, available] = [this.#used, this.count]
    const waiting = this.#waiting(this.#open.filter(({ isRecovered }) => !isRecovered))
    const lost = this.#gradients - this.#repeated - used - available - waiting
    return { used, available, waiting, discarded: this.#dropped + lost, repeated: this.#repeated }
  }

  /** Number of own gradients in the open segment. */
  get openCount(): number {
    return this.#openCount
  }

  /** Number of closed segments of this epoch, and of gradients in them. */
  get closed(): { readonly segments: number; readonly count: number } {
    return { segments: this.#list.length, count: this.#count }
  }

  /** Number of segments with a vector that can be carried over. */
  get retainedSums(): number {
    return this.#retained.countAt(this.#period)
  }

  /** With a budget: number of elements in the sums of other segments. */
  get retainedElements(): number {
    return this.#retained.elements
  }

  /** Number of grids of earlier predictors that are kept to round these segments again. */
  get retainedGrids(): number {
    return this.#past.grids
  }

  /** Period in which the oldest of these was closed; undefined if there is none. */
  get oldestRetained(): number | undefined {
    return this.#retained.oldest
  }

  /**
   * Gradients were added to the open segment.
   * @param first number of the first input, if there is a journal
   * @throws RangeError if the open segment holds inputs of another recovered segment, or of none:
   * call `close` between them
   */
  added(count: number, first?: number): void {
    if (first !== undefined) {
      const of = this.#open.find(one => this.#isRelearnable(one) && isIn(one.remaining, first))
      const isOwed = this.#owed.has(first)
      if (this.#openCount > 0 && (of !== this.#openOf || (isOwed && of === undefined))) {
        throw new RangeError('inputs of a recovered segment must have a segment of their own: close the open one first')
      }
      if (isOwed) this.#owed.remove(first, first + count, of !== undefined)
      if (isOwed && of === undefined) {
        this.#own.keepBack()
        return
      }
      this.#openOf = of
      if (of && this.#own.hasBudget && !isOwed) this.#own.dropAgain()
      this.#openInputs = withRange(this.#openInputs, first, first + count)
      if (of !== undefined) of.remaining = without(of.remaining, [first, first + count])
      if (of?.isRecovered === false) this.#repeated += count
    }
    this.#gradients += count
    this.#openCount += count
  }

  /** Own gradients were dropped before they were recorded. */
  discard(count: number): void {
    this.#dropped += count
  }

  /** Sum of all own gradients of this epoch, without closing the open segment. */
  total(): LocalSum {
    const sum = this.#own.total(this.count, this.#isStale)
    return { sum, count: this.count, coverage: this.#coverage }
  }

  /** Closes the open segment. @returns the epoch's sum, which is valid until the next call */
  close(period: number): LocalSum {
    if (this.#openCount > 0) {
      const isRetained = this.#carry > 0 || this.#own.hasBudget
      const segment: Segment = {
        number: this.#nextSegment++,
        sum: this.#own.closeSegment(this.#isStale, isRetained, this.#gradients - this.#gradientsBefore),
        elements: 0,
        taken: undefined,
        grid: isRetained ? this.#own.grid : undefined,
        count: this.#openCount,
        period,
        updates: this.#id.updates,
        inputs: this.#openInputs,
        of: this.#openOf,
        remaining: NO_INPUTS,
        isRepeated: false,
        isRecovered: false,
        used: false
      }
      if (this.#own.hasBudget && segment.sum) segment.elements = sizeOfSum(segment.sum)
      this.#closedAt = this.#period
      this.#list.push(segment)
      this.#closed = undefined
      this.#records?.segment(segment, this.#epochNumber)
      if (isRetained) {
        this.#retained.add(segment)
        this.releaseSums(period)
      }
      this.#count += this.#openCount
      this.#openCount = 0
      this.#openInputs = NO_INPUTS
      this.#owed.close()
      this.#openOf = undefined
    }
    // A sum that is scaled down is valid only until the next one.
    if (this.#closed === undefined || this.#own.isBounded)
      this.#closed = { sum: this.#own.closed(this.#count), count: this.#count, coverage: this.#coverage }
    return this.#closed
  }

  /**
   * Ends the epoch and starts the next one.
   * @param lineage headers of `next` and its ancestors, newest first, as far as they are known
   * @param carries whether gradients of the current predictor can be used at `next`; otherwise no
   * earlier segment is carried over any more, to no later predictor @default true
   * @param grid grid of `next`, if sums are integers
   */
  switchPredictor(
    next: PredictorId,
    lineage: readonly Header[],
    period: number,
    { carries = true, grid }: { readonly carries?: boolean; readonly grid?: LazyGrid } = {}
  ): void {
    this.close(period)
    this.#own.endEpoch(this.#count, this.#gradients - this.#gradientsBefore)
    this.#gradientsBefore = this.#gradients
    this.#past.addEpoch({
      number: this.#epochNumber,
      id: this.#id,
      contributor: this.#contributors[0],
      segments: this.#list,
      carried: this.#carried,
      open: this.#open,
      used: this.#used,
      until: period,
      held: { number: this.#epochNumber, grid: this.#own.grid },
      settled: this.#own.settled
    })
    const { unused, settled, used, ...decided } = this.#past.decide(next, lineage)
    this.#used = used
    this.#own.settle(settled)
    this.releaseSums(period, carries ? maxRetainedSums(this.#carry) : 0)
    const isDropped = this.#past.dropOldest(next.updates, period, this.#history)
    this.#begin(next, unused, grid, decided)
    if (isDropped) this.#records?.dropped(this.#past.oldest ?? this.#epochNumber)
  }

  /**
   * Starts an epoch.
   * @param unused segments that its lineage has not used, oldest first
   * @param decided those that it has used since the epoch with number `after`
   */
  #begin(
    id: PredictorId,
    unused: readonly Segment[],
    grid = this.#own.grid,
    decided?: Pick<Decision, 'added' | 'after'>
  ): void {
    this.#id = id
    this.#epochNumber++
    this.#doubtful = this.#past.doubtfulAt(id)
    const list: Segment[] = []
    const open = new Set<Segment>()
    for (const segment of unused) {
      if (!segment.isRepeated && isExpired(segment, this.#period, this.#carry)) {
        if (!this.#repeats || segment.inputs.length === 0) continue
        segment.isRepeated = true
        segment.remaining = segment.inputs
      }
      if (segment.isRepeated ? segment.remaining.length > 0 : isAmong(segment, this.#doubtful)) open.add(segment)
      else if (!segment.isRepeated) list.push(segment)
    }
    // While inputs that were learned again are unused, the earlier segments can still be used
    // instead.
    for (const segment of [...list, ...open]) for (let one = segment.of; one; one = one.of) open.add(one)
    this.#list = list
    this.#closed = undefined
    this.#open = [...open]
    this.#carried = list.length
    this.#own.beginEpoch(list, grid)
    this.#count = list.reduce((sum, { count }) => sum + count, 0)
    if (this.#own.hasBudget) this.#own.balance(this.#retained.segments, new Set(this.pending))
    this.#records?.epoch({
      number: this.#epochNumber,
      id,
      carried: list,
      open: this.#open,
      grid: this.#own.hasBudget ? grid : undefined,
      decided
    })
  }

  #isRelearnable(segment: Segment): boolean {
    return segment.remaining.length > 0 && !isAmong(segment, this.#doubtful)
  }

  /** Adds the runs of this node to which the epochs refer. */
  mark(live: Set<number>): void {
    live.add(this.#contributors[0])
    this.#past.mark(live)
  }

  /** Whether the residual is older than carry-over allows for gradients. */
  get #isStale(): boolean {
    return this.#carry > 0 && this.#period - this.#closedAt > this.#carry
  }

  /** Coverage of all closed segments. */
  get #coverage(): Coverage {
    const { length } = this.#list
    return length === 0 ? NO_COVERAGE : { contributors: this.#contributors, runs: [0, 1, length], size: 1 }
  }

  /**
   * Releases the vectors of segments that cannot be carried over any more.
   * @param max number of vectors that may remain
   */
  releaseSums(period: number, max = maxRetainedSums(this.#carry)): void {
    this.#period = period
    this.#retained.release(period, max)
    this.#past.releaseGrids()
  }
}

/**
 * A node's own gradients. While the node holds one predictor (an epoch), its gradients form an ordered list of segments. A
 * segment is closed whenever a sum is sent, so every sum in the network covers a prefix of the list. When the node switches
 * to another predictor, the headers on that predictor's lineage determine which segments have been used; the others are
 * carried over to the next epoch's list unless they are too old. No gradient is used twice on any lineage. With `carry` 0
 * every epoch starts empty, which is the published algorithm.
 *
 * With a journal the same holds across runs: epochs of earlier runs are recovered without vectors. Inputs that the lineage has not
 * used are learned again. Those in sums of an earlier run at the predictor that is held now are in doubt, because neighbours may
 * still hold these sums: they wait for the next predictor.
 *
 * Memory: the epoch's sum, the open segment, and a vector for each segment that can still be carried over, `maxRetainedSums` at
 * most. A segment that cannot be carried over any more remains in the epoch's sum only.
 */
import { clearBlock, compactCopy, dropSupport, findSupport, zeroBlock } from '../base/support.js'
import type { Blocks } from '../learner/types.js'
import type { Contributor } from './contributors.js'
import { type Coverage, segmentsOf } from './coverage.js'
import type { OwnInfluence } from './influence.js'
import type { JournalRecord, Recovered } from './journal.js'
import type { LazyGrid } from './lazy-grid.js'
import type { Header } from './predictor.js'
import { type PredictorId, sameId } from './predictor-id.js'
import { isIn, type Ranges, sizeOf, without, withRange } from './ranges.js'
import { Rounding } from './rounding.js'
import { type Epoch, isAmong, isUsed, lostWith, type Segment } from './segments.js'
import { addInto, type BufferPool, clear, copyOf } from './vectors.js'

/** Segments closed within a period that keep a vector of their own, beyond one a period. Headers of as many updates are kept. */
const BURST = 64

/** Bound of `retainedSums`. @param carry S, at least 1 */
export function maxRetainedSums(carry: number): number {
  return carry + 1 + BURST
}

export interface LedgerOptions {
  readonly buffers: BufferPool
  /** S: number of periods for which unused segments are kept, 0 for none. */
  readonly carry: number
  /** Index of this node in coverages. */
  readonly contributor: number
  /** The initial predictor. */
  readonly id: PredictorId
  /** Its grid, if sums are integers. */
  readonly grid?: LazyGrid
  /** Whether the learner adds elements of the first block to its support (`AdmbOptions.marksElements`). */
  readonly marksElements?: boolean
  /** This run, if there is a journal. */
  readonly run?: Contributor
  /** Bounds the sums. */
  readonly influence?: OwnInfluence
}

/** This node's contribution to a sum: all closed segments of the current epoch. With a grid, the sum consists of integers. */
export interface LocalSum {
  readonly sum: Blocks
  readonly count: number
  readonly coverage: Coverage
}

export class Ledger {
  readonly #marksElements: boolean
  readonly #carry: number
  readonly #contributors: readonly number[]
  /** This run's number, for the journal; undefined without one. */
  readonly #run: Contributor | undefined
  #id: PredictorId
  #grid: LazyGrid | undefined
  /** Undefined without a grid. */
  readonly #rounding: Rounding | undefined
  #settled: ReadonlyMap<Segment, LazyGrid> = new Map()
  #list: Segment[] = []
  /** Number of segments carried over into this epoch. */
  #carried = 0
  readonly #sum: Float32Array[]
  #count = 0
  /** Segments that the lineage has not used and that are not on the list. */
  #open: readonly Segment[] = []
  /** Segments on lists of earlier runs at the current predictor. */
  #doubtful: ReadonlySet<Segment> = new Set()
  readonly #openSum: readonly Float32Array[]
  #openCount = 0
  #openInputs: Ranges = []
  #openOf: Segment | undefined
  #nextSegment = 1
  #epochNumber = 0
  #records: JournalRecord[] = []
  /** Earlier epochs whose segments can still be carried over, oldest first. */
  #epochs: Epoch[] = []
  /** Segments with a sum, oldest first. */
  readonly #retained: Segment[] = []
  #discarded = 0
  readonly #influence: OwnInfluence | undefined
  #period = 0
  /** Period in which a segment was closed last. */
  #closedAt = 0

  constructor({ buffers, carry, contributor, id, grid, run, influence, marksElements = false }: LedgerOptions) {
    this.#influence = influence
    this.#marksElements = marksElements
    this.#carry = carry
    this.#contributors = [contributor]
    this.#run = run
    this.#id = id
    this.#grid = grid
    this.#rounding = grid && new Rounding(buffers.layout)
    this.#sum = buffers.zeros()
    this.#openSum = buffers.layout.blocks.map(({ length }, b) =>
      marksElements && b === 0 ? zeroBlock(length) : new Float32Array(length)
    )
    if (run !== undefined) this.#begin(id, [])
  }

  /** Continues the journal of earlier runs. Call it at the initial predictor, before anything is added. */
  recover({ epochs, segments, nextSegment }: Recovered): void {
    this.#epochs = [...epochs]
    this.#nextSegment = nextSegment
    this.#epochNumber = epochs.at(-1)?.number ?? 0
    this.#records = []
    this.#begin(this.#id, segments)
  }

  /** Takes the records since the last call. */
  takeRecords(): readonly JournalRecord[] {
    const records = this.#records
    if (records.length > 0) this.#records = []
    return records
  }

  /** Inputs of earlier runs to learn again now, [first, end); undefined if there are none, or all are in doubt. */
  get relearnable(): readonly [first: number, end: number] | undefined {
    const segment = this.#open.find(one => this.#isRelearnable(one))
    return segment && [segment.remaining[0], segment.remaining[1]]
  }

  /** Inputs [first, end) of earlier runs cannot be learned again. */
  forget(first: number, end: number): void {
    for (const segment of this.#open) {
      const before = sizeOf(segment.remaining)
      segment.remaining = without(segment.remaining, [first, end])
      this.#discarded += before - sizeOf(segment.remaining)
    }
  }

  /** Number of inputs of earlier runs that wait to be learned again, or whose new gradients are in doubt. */
  get waiting(): number {
    return this.#open.reduce((sum, segment) => sum + (isUsed(segment) ? 0 : lostWith(segment)), 0)
  }

  /** Blocks to which the learner adds gradients; `added` must follow. */
  get accumulator(): Blocks {
    return this.#openSum
  }

  /** See `Rounding.residualShare`; undefined for float32 sums. */
  get residualShare(): number | undefined {
    return this.#rounding?.residualShare
  }

  /** Sum of the open segment, of those on the list that have a vector, and of what rounding has left of others. */
  get unused(): Blocks {
    const sum = copyOf(this.#openSum)
    for (const segment of this.#list) if (segment.sum) addInto(sum, segment.sum)
    if (this.#rounding) addInto(sum, this.#rounding.residual)
    return sum
  }

  /** Number of own gradients of this epoch, including the open segment. */
  get count(): number {
    return this.#count + this.#openCount
  }

  /** Number of own gradients that were dropped unused. */
  get discarded(): number {
    return this.#discarded
  }

  /** Number of segments with a vector of their own. */
  get retainedSums(): number {
    return this.#retained.length
  }

  /** Period in which the oldest of these was closed; undefined if there is none. */
  get oldestRetained(): number | undefined {
    return this.#retained[0]?.period
  }

  /**
   * @param first number of the first input, if there is a journal
   * @throws RangeError if the open segment holds inputs of another recovered segment, or of none: call `close` between them
   */
  added(count: number, first?: number): void {
    if (first !== undefined) {
      const of = this.#open.find(one => this.#isRelearnable(one) && isIn(one.remaining, first))
      if (this.#openCount > 0 && of !== this.#openOf) {
        throw new RangeError('inputs of a recovered segment must have a segment of their own: close the open one first')
      }
      this.#openOf = of
      this.#openInputs = withRange(this.#openInputs, first, first + count)
      if (of !== undefined) of.remaining = without(of.remaining, [first, first + count])
    }
    this.#openCount += count
  }

  /** Drops what has been added to the accumulator. */
  discard(count: number): void {
    clear(this.#openSum)
    this.#discarded += count
  }

  /** Sum of all own gradients of this epoch, without closing the open segment. */
  total(): LocalSum {
    const sum = this.#sum.map((_, block) => this.totalBlock(block))
    return { sum, count: this.count, coverage: this.#coverage }
  }

  /** One block of `total`. @param streamed gradients in the accumulator that have not been counted yet */
  totalBlock(block: number, streamed = 0): Float32Array {
    return this.#bounded(this.#unboundedBlock(block), block, this.count + streamed)
  }

  #unboundedBlock(block: number): Float32Array {
    const sum = this.#sum[block].slice()
    const open = this.#openSum[block]
    if (this.#grid) {
      this.#rounding?.preview(open, sum, this.#grid, block, this.#isStale)
      return sum
    }
    for (let i = 0; i < sum.length; i++) sum[i] += open[i]
    return sum
  }

  /** Closes the open segment and returns the epoch's sum. The blocks are valid until the next call. */
  close(period: number): LocalSum {
    if (this.#openCount > 0) {
      for (const block of this.#openSum) findSupport(block)
      if (this.#grid) this.#rounding?.close(this.#openSum, this.#sum, this.#grid, this.#isStale)
      else addInto(this.#sum, this.#openSum)
      this.#closedAt = this.#period
      const isRetained = this.#carry > 0
      const segment: Segment = {
        number: this.#nextSegment++,
        sum: isRetained ? this.#openSum.map(compactCopy) : undefined,
        grid: this.#grid,
        count: this.#openCount,
        period,
        updates: this.#id.updates,
        inputs: this.#openInputs,
        of: this.#openOf,
        remaining: [],
        isRecovered: false,
        used: false,
        epochs: 1
      }
      this.#list.push(segment)
      this.#record(segment)
      if (isRetained) {
        this.#retained.push(segment)
        this.releaseSums(period)
      }
      for (const [b, block] of this.#openSum.entries()) {
        clearBlock(block)
        if (b > 0 || !this.#marksElements) dropSupport(block)
      }
      this.#count += this.#openCount
      this.#openCount = 0
      this.#openInputs = []
      this.#openOf = undefined
    }
    const sum = this.#influence ? this.#sum.map((block, b) => this.#bounded(block, b, this.#count)) : this.#sum
    return { sum, count: this.#count, coverage: this.#coverage }
  }

  /** A block of the own sum, as it is sent. */
  #bounded(block: Float32Array, b: number, count: number): Float32Array {
    return this.#influence?.bounded(block, b, count, this.#grid?.[b]) ?? block
  }

  /**
   * Ends the epoch and starts the next one.
   * @param lineage headers of `next` and its ancestors, newest first, as far as they are known
   * @param carries whether unused segments can be used at `next`; otherwise all are dropped @default true
   * @param grid grid of `next`, if sums are integers
   */
  switchPredictor(
    next: PredictorId,
    lineage: readonly Header[],
    period: number,
    { carries = true, grid }: { readonly carries?: boolean; readonly grid?: LazyGrid } = {}
  ): void {
    this.close(period)
    this.#influence?.record(this.#sum, this.#count, this.#grid)
    this.#epochs.push({
      number: this.#epochNumber,
      id: this.#id,
      contributor: this.#contributors[0],
      segments: this.#list,
      carried: this.#carried,
      open: this.#open,
      grid: this.#grid,
      settled: this.#settled
    })
    const unused = this.#unused(next, lineage)
    this.releaseSums(period)
    this.#grid = grid
    const needed = carries ? this.#needed(period) : new Set<Segment>()
    this.#begin(
      next,
      unused.filter(segment => needed.has(segment))
    )
    this.#dropEpochs(needed)
  }

  /** Starts an epoch. @param unused segments that are needed and that its lineage has not used, oldest first */
  #begin(id: PredictorId, unused: readonly Segment[]): void {
    this.#id = id
    this.#epochNumber++
    this.#doubtful = new Set(
      this.#epochs.flatMap(epoch =>
        epoch.contributor !== this.#contributors[0] && sameId(epoch.id, id) ? epoch.segments : []
      )
    )
    const list: Segment[] = []
    const open: Segment[] = []
    for (const segment of unused) {
      if (segment.isRecovered || isAmong(segment, this.#doubtful)) open.push(segment)
      else list.push(segment)
    }
    this.#list = list
    this.#open = open
    this.#carried = list.length
    clear(this.#sum)
    this.#count = 0
    for (const segment of list) {
      segment.epochs++
      this.#count += segment.count
      if (segment.sum === undefined) continue
      if (this.#grid) Rounding.carry(this.#sum, segment.sum, this.#grid)
      else addInto(this.#sum, segment.sum)
    }
    if (this.#run !== undefined) {
      this.#records.push({
        kind: 'epoch',
        number: this.#epochNumber,
        id,
        incarnation: this.#run.incarnation,
        nonce: this.#run.nonce,
        carried: list.map(({ number }) => number),
        open: open.map(({ number }) => number)
      })
    }
  }

  #record({ number, inputs, of }: Segment): void {
    if (this.#run === undefined) return
    const record = { kind: 'segment', number, epoch: this.#epochNumber, inputs } as const
    this.#records.push(of === undefined ? record : { ...record, of: of.number })
  }

  #isRelearnable(segment: Segment): boolean {
    return segment.remaining.length > 0 && !isAmong(segment, this.#doubtful)
  }

  /** Adds the runs of this node to which the epochs refer. */
  mark(live: Set<number>): void {
    live.add(this.#contributors[0])
    for (const { contributor } of this.#epochs) live.add(contributor)
  }

  /** Whether the residual is older than carry-over allows for gradients. */
  get #isStale(): boolean {
    return this.#carry > 0 && this.#period - this.#closedAt > this.#carry
  }

  /** Covers all closed segments. */
  get #coverage(): Coverage {
    const { length } = this.#list
    return { contributors: this.#contributors, segments: length === 0 ? [] : [length] }
  }

  /**
   * Segments that `lineage` has certainly not used, oldest first; marks all segments as used or not. The newest own epochs on the
   * lineage (one in each run that held the predictor) decide. The child of their predictor used a prefix of each of their lists.
   * Earlier segments were decided when the first of them began. Later gradients cannot be on the lineage.
   */
  #unused({ updates }: PredictorId, lineage: readonly Header[]): Segment[] {
    const [on, coverage] = this.#newestEpochsOn(lineage)
    const first = on[0] ?? this.#epochs[0]
    const candidates = new Set([...first.segments.slice(0, first.carried), ...first.open])
    for (const { segments, carried } of this.#epochs.slice(this.#epochs.indexOf(first))) {
      for (const segment of segments.slice(carried)) candidates.add(segment)
    }
    // If no own epoch is on the known lineage, gradients taken before its oldest parent may have been used: count them as used.
    const known = on.length > 0 ? 0 : (lineage.at(-1)?.parent.updates ?? updates)
    for (const { segments } of this.#epochs) for (const segment of segments) segment.used = true
    for (const segment of candidates) segment.used = segment.updates < known
    const settled = new Map(first.settled)
    for (const { segments, contributor, grid } of on) {
      for (const segment of segments.slice(0, segmentsOf(coverage, contributor))) {
        segment.used = true
        if (grid && !settled.has(segment)) settled.set(segment, grid)
      }
    }
    this.#settle(settled)
    return [...candidates].filter(segment => !isUsed(segment)).sort((a, b) => a.number - b.number)
  }

  /** Rounding errors of segments that the lineage has used join the residual; those of others no longer count. */
  #settle(settled: ReadonlyMap<Segment, LazyGrid>): void {
    if (this.#rounding === undefined) return
    const now = new Map([...settled].filter(([{ sum }]) => sum !== undefined))
    for (const segment of new Set([...this.#settled.keys(), ...now.keys()])) {
      const { sum, grid } = segment
      if (sum && grid) this.#rounding.settle(sum, grid, this.#settled.get(segment), now.get(segment))
    }
    this.#settled = now
  }

  /** @returns the own epochs at the newest predictor on the lineage that has any, and the coverage of the predictor's child */
  #newestEpochsOn(lineage: readonly Header[]): [epochs: readonly Epoch[], coverage: Coverage] {
    const oldest = Math.min(...this.#epochs.map(({ id }) => id.updates))
    for (const { parent, coverage } of lineage) {
      if (parent.updates < oldest) break
      const on = this.#epochs.filter(({ id }) => sameId(id, parent))
      if (on.length > 0) return [on, coverage]
    }
    return [[], { contributors: [], segments: [] }]
  }

  #isExpired({ sum, period }: Segment, now: number): boolean {
    return sum === undefined || now - period > this.#carry
  }

  /** Releases the vectors of segments that cannot be carried over any more. */
  releaseSums(period: number): void {
    this.#period = period
    let released = 0
    for (const segment of this.#retained) {
      const isExcess = this.#retained.length - released > maxRetainedSums(this.#carry)
      if (!isExcess && !this.#isExpired(segment, period)) break
      released++
      segment.sum = undefined
    }
    if (released > 0) this.#retained.splice(0, released)
  }

  /** Drops the oldest epochs as long as none of their segments is needed. */
  #dropEpochs(needed: ReadonlySet<Segment>): void {
    let expired = 0
    for (; expired < this.#epochs.length; expired++) {
      const { segments } = this.#epochs[expired]
      if (segments.some(segment => needed.has(segment))) break
      for (const segment of segments) {
        if (--segment.epochs === 0 && !segment.used) this.#discarded += lostWith(segment)
      }
    }
    if (expired === 0) return
    // It is no longer known whether a lineage that left this one at a dropped epoch used these inputs.
    const dropped = new Set(this.#epochs.slice(0, expired).flatMap(({ segments }) => segments))
    for (const { segments } of this.#epochs) {
      for (const segment of segments) if (isAmong(segment, dropped)) segment.remaining = []
    }
    this.#epochs = this.#epochs.slice(expired)
    if (this.#run !== undefined) {
      this.#records.push({ kind: 'dropped', before: this.#epochs[0]?.number ?? this.#epochNumber })
    }
  }

  /** Segments that can be carried over or learned again, and recovered ones that decide whether these have been used. */
  #needed(period: number): ReadonlySet<Segment> {
    const needed = new Set<Segment>()
    for (const { segments } of this.#epochs) {
      for (const segment of segments) {
        if (this.#isSpent(segment, period)) continue
        for (let one: Segment | undefined = segment; one !== undefined; one = one.of) needed.add(one)
      }
    }
    return needed
  }

  /** Whether the segment can be neither carried over nor learned again. */
  #isSpent(segment: Segment, period: number): boolean {
    if (!segment.isRecovered) return this.#isExpired(segment, period)
    return period > this.#carry && (segment.used || segment.remaining.length === 0)
  }
}

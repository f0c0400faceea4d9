/**
 * The numbers of a node's own gradients at the current predictor: the sum of its segments, and the
 * open segment, to which the learner adds. They receive noise if they are private, are rounded if
 * sums are integers, and are scaled down if influence is bounded. Which gradients they are is
 * recorded by `Ledger`.
 */
import type { Blocks, Layout, SumBudget, Unsent } from '../../learning/types.js'
import { blocksOf, type MarkElements, recordWrites, type Sum, SumBlock, sumOf } from '../../numeric/sums.js'
import { type LazyGrid, Rounding } from '../state/rounding.js'
import { addInto, zeros } from '../state/vectors.js'
import type { OwnInfluence } from '../trust/influence.js'
import { type HeldGrid, RETURNED, type Segment, Settled } from './journal.js'

export interface OwnSumOptions {
  /** Bounds the sum. */
  readonly influence?: OwnInfluence
  /** See `AdmbOptions.noise`. */
  readonly noise?: (sum: Blocks) => void
  /** See `AdmbOptions.budget`. */
  readonly budget?: SumBudget
}

/** Number of epochs over which their gradients are averaged. */
const SMOOTHING = 4

/** See `OwnSum.maxKept`: a quarter of a large model. */
export function maxKeptElements(blocks: Blocks): number {
  return Math.max(4096, blocks.reduce((sum, { length }) => sum + length, 0) / 4)
}

/** Share of the typical number of gradients of an epoch, after which a node sends what its budget allows. */
const SENT_AT = 0.5

export class OwnSum {
  /** Blocks to which the learner adds gradients; `recordWrites` or `discard` must follow. */
  readonly accumulator: Blocks
  readonly #open: Sum
  readonly #closed: Sum
  readonly #options: OwnSumOptions
  /** Undefined without a grid. */
  readonly #rounding: Rounding | undefined
  #grid: LazyGrid | undefined
  #settled = Settled.none
  /** With a budget: numbers of elements that may be sent in an epoch, and that were. */
  readonly #limits: readonly number[]
  #sent: number[] = []
  /** Typical number of gradients of an epoch; 0 before the first one has ended. */
  #typical = 0
  /** Whether elements were sent. */
  #hasChanged = false

  /** @param grid that of the initial predictor, if sums are integers */
  constructor(layout: Layout, grid: LazyGrid | undefined, options: OwnSumOptions) {
    this.#open = zeros(layout)
    this.#closed = zeros(layout)
    this.accumulator = blocksOf(this.#open)
    this.#options = options
    this.#limits = options.budget?.limits() ?? []
    this.#grid = grid
    this.#rounding = grid && new Rounding(layout, options.budget)
  }

  /** Grid of the predictor, if sums are integers. */
  get grid(): LazyGrid | undefined {
    return this.#grid
  }

  /** Segments with a sum that the lineage has used, and the grid of the batch with them. */
  get settled(): Settled {
    return this.#settled
  }

  /** Whether influence is bounded. */
  get isBounded(): boolean {
    return this.#options.influence !== undefined
  }

  /** See `Rounding.residualShare`; undefined for float32 sums. */
  get residualShare(): number | undefined {
    return this.#rounding?.residualShare
  }

  /** With a budget: what was not sent yet, and by which number of gradients a contribution divides it. */
  get unsent(): Unsent | undefined {
    if (this.#options.budget === undefined || this.#rounding === undefined || this.#typical === 0) return undefined
    return { sum: this.#rounding.residual, count: this.#typical }
  }

  get hasBudget(): boolean {
    return this.#options.budget !== undefined
  }

  /** With a budget: maximum number of elements in sums of segments that can be carried over no more. */
  get maxKept(): number {
    return maxKeptElements(this.accumulator)
  }

  /** With a budget: whether a later run could not continue with the last copy of what is unsent. */
  takeChanged(): boolean {
    const hasChanged = this.#hasChanged
    this.#hasChanged = false
    return hasChanged
  }

  /** What a later run needs of it. */
  get toKeep(): Unsent {
    return { sum: this.#rounding?.residual ?? [], count: this.#typical }
  }

  /** Continues an earlier run. */
  restoreUnsent({ sum, count }: Unsent): void {
    if (!this.hasBudget) return
    this.#rounding?.addToResidual(sum)
    this.#typical = count
  }

  /** With a budget: drops gradients in the accumulator that the node has computed before. */
  dropAgain(): void {
    for (const block of this.#open.slice(0, this.#options.budget?.place)) block.write().fill(0)
  }

  /** With a budget: gradients in the accumulator join the residual, and do not count. */
  keepBack(): void {
    this.#rounding?.addToResidual(this.accumulator.slice(0, this.#options.budget?.place))
    this.discard()
  }

  /**
   * With a budget: the residual receives the sums that no batch contains or can contain any more, and loses them again if a lineage has
   * used them.
   * @param segments those with a sum
   * @param pending segments that a batch can still use
   */
  balance(segments: readonly Segment[], pending: ReadonlySet<Segment>): void {
    const used = this.#settled.all
    for (const segment of segments) {
      const taken = used.get(segment) ?? (pending.has(segment) ? undefined : RETURNED)
      if (segment.taken !== taken) this.#change(segment, this.#gridOf(segment.taken), this.#gridOf(taken))
      segment.taken = taken
    }
  }

  #gridOf(held: HeldGrid | undefined): LazyGrid | undefined {
    return held === RETURNED ? this.#rounding?.returned : held?.grid
  }

  /** Gradients were added to the accumulator. @param mark see `recordWrites` of a sum */
  recordWrites(mark: MarkElements | undefined): void {
    recordWrites(this.#open, mark)
  }

  /** Drops the gradients that have been added to the accumulator. */
  discard(): void {
    for (const block of this.#open) block.write().fill(0)
  }

  /** Sum of the open segment, of others with a vector, and of what rounding has left. */
  unused(segments: readonly Segment[]): Blocks {
    const sum = sumOf(this.accumulator.map(block => block.slice()))
    for (const segment of segments) if (segment.sum) addInto(sum, segment.sum)
    if (this.#rounding) addInto(sum, this.#rounding.residual)
    return blocksOf(sum)
  }

  /**
   * Adds the open segment to the sum.
   * @param isStale whether what rounding has left is limited
   * @param count number of gradients of the node in this epoch
   * @returns its gradients as they were added, for carry-over
   */
  closeSegment(isStale: boolean, isRetained: boolean, count: number): Segment['sum'] {
    // A segment that is carried over or rounded again keeps its noise, so that it never reveals
    // more.
    this.#options.noise?.(this.#open.map(block => block.write()))
    for (const block of this.#open) block.makeSparse()
    if (this.#grid) {
      const isDue = count >= SENT_AT * this.#typical
      const limits = this.#limits.map((limit, b) => (isDue ? limit - (this.#sent[b] ?? 0) : 0))
      const sent = this.#rounding?.close(this.#open, this.#closed, this.#grid, isStale, limits) ?? []
      this.#hasChanged ||= sent.some(elements => elements > 0)
      this.#sent = sent.map((elements, b) => elements + (this.#sent[b] ?? 0))
    } else addInto(this.#closed, this.#open)
    const sum = isRetained ? this.#open.map(block => block.compactCopy()) : undefined
    for (const block of this.#open) block.clear()
    return sum
  }

  /** The sum of closed segments as it is sent, valid until the next call. @param count of gradients */
  closed(count: number): Sum {
    return this.isBounded ? this.#closed.map((block, b) => this.#bounded(block, b, count)) : this.#closed
  }

  /** The same with the open segment, which stays open. */
  total(count: number, isStale: boolean): Sum {
    return this.#closed.map((closed, b) => {
      const sum = new SumBlock(closed.read().slice())
      if (this.#grid) this.#rounding?.preview(this.#open[b], sum, this.#grid, b, isStale)
      else sum.addBlock(this.#open[b])
      return this.#bounded(sum, b, count)
    })
  }

  #bounded(block: SumBlock, b: number, count: number): SumBlock {
    return this.#options.influence?.bounded(block, b, count, this.#grid?.[b]) ?? block
  }

  /**
   * The epoch ends.
   * @param count number of gradients in closed segments
   * @param added number of those that were not carried over
   */
  endEpoch(count: number, added: number): void {
    if (added > 0) this.#typical = this.#typical === 0 ? added : this.#typical + (added - this.#typical) / SMOOTHING
    this.#options.influence?.record(this.#closed, count, this.#grid)
  }

  /**
   * The lineage has used these segments: adds their rounding errors to the residual, and removes
   * those of others.
   * @param settled see `settled`
   */
  settle(settled: Settled): void {
    if (this.#rounding === undefined) return
    if (this.hasBudget) {
      // `balance` follows.
    } else if (settled.before === this.#settled)
      for (const [segment, { grid }] of settled.added) this.#change(segment, undefined, grid)
    else if (settled !== this.#settled) {
      const [earlier, later] = [this.#settled.all, settled.all]
      for (const [segment, { grid }] of earlier) this.#change(segment, grid, later.get(segment)?.grid)
      for (const [segment, { grid }] of later) if (!earlier.has(segment)) this.#change(segment, undefined, grid)
    }
    this.#settled = settled
  }

  #change({ sum, grid }: Segment, before: LazyGrid | undefined, now: LazyGrid | undefined): void {
    if (sum && grid) this.#rounding?.settle(sum, grid, before, now)
  }

  /** An epoch begins with these segments. @param grid that of its predictor */
  beginEpoch(segments: readonly Segment[], grid: LazyGrid | undefined): void {
    this.#grid = grid
    this.#sent = []
    for (const block of this.#closed) block.clear()
    for (const { sum } of segments) {
      if (sum === undefined) continue
      if (grid) Rounding.carry(this.#closed, sum, grid)
      else addInto(this.#closed, sum)
    }
  }
}

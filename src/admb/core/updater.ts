/**
 * Makes an update as soon as own gradients and those of neighbours' sums fill a batch (Dekel et al.,
 * Algorithm 6).
 */
import { DivergenceError } from '../../base/errors.js'
import type { Blocks, Layout } from '../../learning/types.js'
import { blocksOf } from '../../numeric/sums.js'
import { type Contributor, union } from '../state/coverage.js'
import { type Batch, batchOf, type Header, type Predictor } from '../state/predictor.js'
import { type BufferPool, createStep, expand, type Shapes, type Step } from '../state/vectors.js'
import type { Trust } from '../trust/trust.js'
import { FRAME_LIMITS, WAIT_BATCHES } from '../wire/frame.js'
import type { Announcements } from './announcements.js'
import type { CurrentPredictor, ReceivedPredictor } from './current-predictor.js'
import type { Edge, NeighbourSum } from './edge.js'
import type { Ledger } from './ledger.js'
import type { Mastership } from './mastership.js'
import { addUp, type NeighbourSums } from './neighbour-sums.js'
import type { AdmbOptions, Effect } from './options.js'
import type { OutgoingSums } from './outgoing-sums.js'

export interface UpdaterOptions extends Pick<AdmbOptions, 'batch' | 'rule' | 'averaging'> {
  readonly shapes: Shapes
  readonly contributor: Contributor
  readonly buffers: BufferPool
  readonly edges: ReadonlyMap<number, Edge>
  readonly current: CurrentPredictor
  readonly ledger: Ledger
  readonly sums: NeighbourSums
  readonly outgoingSums: OutgoingSums
  readonly announcements: Announcements | undefined
  readonly trust: Trust | undefined
  /** Undefined if every node makes updates. */
  readonly mastership: Mastership | undefined
  readonly report: (effect: Effect) => void
  /** The node holds the predictor from now on. */
  switchPredictor(headers: readonly Header[], received: ReceivedPredictor): void
}

export class Updater {
  readonly #options: UpdaterOptions

  constructor(options: UpdaterOptions) {
    this.#options = options
  }

  /** b of the current predictor. */
  get batch(): number {
    return batchOf(this.#options.batch, this.#predictor)
  }

  /** See `AdmbNode.needed`. */
  get needed(): number {
    return this.#options.announcements?.isWaiting ? WAIT_BATCHES * this.batch : this.batch
  }

  /** Number of available gradients, own and neighbours'. */
  get gradients(): number {
    return this.#options.ledger.count + this.#options.sums.count
  }

  /** Whether the maximum number of updates is reached, as only a faulty peer claims. */
  get isFinal(): boolean {
    return this.#predictor.id.updates >= FRAME_LIMITS.updates
  }

  get #predictor(): Predictor {
    return this.#options.current.predictor
  }

  /**
   * Updates with all available gradients while they are at least `needed`.
   * @param isRemainder whether no further inputs are expected, so that any gradients suffice
   * @throws DivergenceError if the update is not finite and no neighbour's sum alone is the cause
   */
  updateIfFull(period: number, isRemainder = false): void {
    const { announcements, mastership, switchPredictor, report } = this.#options
    const { gradients } = this
    const needed = isRemainder ? 1 : this.needed
    if (mastership ? !mastership.mayUpdate(gradients, needed, isRemainder) : gradients < needed) return
    if (this.isFinal) return
    announcements?.giveUp()
    const update = this.#make(period)
    if (update !== undefined) {
      const { predictor, header, step, batch } = update
      switchPredictor([header], { predictor, steps: [step] })
      report({ kind: 'updated', predictor, header, batch })
    } else if (!this.#dropOverflowingSums()) {
      throw new DivergenceError(
        `update ${this.#predictor.id.updates + 1} gives numbers that are not finite: scale the features, or use a smaller step (--rule NAME,step=…)`
      )
    }
    // Segments that were in doubt at the last predictor may now fill the next batch.
    this.updateIfFull(period)
  }

  /** Closes the open segment. @returns the update with all available gradients, if finite */
  #make(period: number) {
    const { buffers, ledger, sums, current, contributor, shapes, trust } = this.#options
    const sum = buffers.take()
    const { count, coverages } = addUp(sum, ledger.close(period), sums.selected())
    const coverage = union(coverages)
    const batch = { sum, count, contributorCount: coverage.size }
    const predictor = current.next(batch, contributor)
    if (predictor === undefined) return undefined
    const unsigned: Header = { id: predictor.id, parent: current.predictor.id, count, coverage }
    const header = trust?.authenticity?.signed(unsigned) ?? unsigned
    const step = createStep(sum, shapes)
    const isCompact = step.blocks.every(block => block instanceof Uint8Array)
    if (isCompact) buffers.give(sum)
    return { predictor, header, step, batch: isCompact ? expanded(batch, step, shapes.parameters) : batch }
  }

  /**
   * Drops sums that alone would make the update non-finite (a fault or an attack).
   * @returns whether there was one
   */
  #dropOverflowingSums(): boolean {
    const { edges, sums, outgoingSums, report } = this.#options
    let wasDropped = false
    for (const [number, edge] of edges) {
      if (edge.held.sum === undefined || !this.#isOverflowing(edge.held.sum)) continue
      sums.dropSum(edge)
      outgoingSums.markChanged()
      report({ kind: 'refused', edge: number, reason: 'gradient sum would make the update non-finite' })
      wasDropped = true
    }
    return wasDropped
  }

  #isOverflowing({ sum, count, coverage }: NeighbourSum): boolean {
    const { current, contributor } = this.#options
    return count > 0 && !current.next({ sum, count, contributorCount: coverage.size }, contributor)
  }

  /** The running average after an update with the available gradients, or the current one. */
  lookAhead(): Blocks {
    const { rule, averaging, current, buffers, ledger, sums } = this.#options
    const { id, parameters: before, average } = current.predictor
    if (this.gradients === 0) return averaging.read?.(average, before) ?? average
    const sum = buffers.take()
    const { count, coverages } = addUp(sum, ledger.total(), sums.selected())
    const contributors = union(coverages).size
    const { parameters, state } = rule.step(current.predictor, blocksOf(sum), count, id.updates, contributors)
    buffers.give(sum)
    const next = averaging.average(average, parameters, id.updates, before, rule.minWeight?.(state))
    return averaging.read?.(next, parameters) ?? next
  }
}

/** A batch whose sum is expanded when it is read. */
function expanded({ count, contributorCount }: Batch, step: Step, layout: Layout): Batch {
  return {
    count,
    contributorCount,
    get sum() {
      return expand(step, layout)
    }
  }
}

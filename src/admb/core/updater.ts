/** Makes updates from the own sum and the neighbours' sums (Dekel et al., Algorithm 6). */
import type { Blocks, Layout } from '../../learning/types.js'
import { blocksOf } from '../../numeric/sums.js'
import { type Contributor, union } from '../state/coverage.js'
import type { Batch, Header, Predictor } from '../state/predictor.js'
import { type BufferPool, createStep, expand, type Shapes, type Step } from '../state/vectors.js'
import type { Trust } from '../trust/trust.js'
import type { CurrentPredictor } from './current-predictor.js'
import type { NeighbourSum } from './edge.js'
import type { Ledger } from './ledger.js'
import { addUp, type NeighbourSums } from './neighbour-sums.js'
import type { AdmbOptions } from './options.js'

/** An update that the node makes. */
export interface Update {
  readonly predictor: Predictor
  readonly header: Header
  readonly step: Step
  readonly batch: Batch
}

export interface UpdaterOptions extends Pick<AdmbOptions, 'rule' | 'averaging'> {
  readonly shapes: Shapes
  readonly contributor: Contributor
  readonly buffers: BufferPool
  readonly current: CurrentPredictor
  readonly ledger: Ledger
  readonly sums: NeighbourSums
  readonly trust: Trust | undefined
}

export class Updater {
  readonly #options: UpdaterOptions

  constructor(options: UpdaterOptions) {
    this.#options = options
  }

  /** Closes the open segment. @returns the update with all available gradients, if finite */
  make(period: number): Update | undefined {
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

  /** Whether this sum alone makes the update non-finite. */
  isOverflowing({ sum, count, coverage }: NeighbourSum): boolean {
    const { current, contributor } = this.#options
    return count > 0 && !current.next({ sum, count, contributorCount: coverage.size }, contributor)
  }

  /** The running average after an update with the available gradients, or the current one. */
  lookAhead(): Blocks {
    const { rule, averaging, current, buffers, ledger, sums } = this.#options
    const { id, parameters: before, average } = current.predictor
    if (ledger.count + sums.count === 0) return averaging.read?.(average, before) ?? average
    const sum = buffers.take()
    const { count, coverages } = addUp(sum, ledger.total(), sums.selected())
    const contributors = union(coverages).size
    const { parameters, state } = rule.step(current.predictor, blocksOf(sum), count, id.updates, contributors)
    buffers.give(sum)
    const next = averaging.average(average, parameters, id.updates, before, rule.leastWeight?.(state))
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

/** The sum that a node streams while its gradients are computed, at most one at a time. */
import type { Edge } from './edge.js'
import type { FrameSender } from './frame-sender.js'
import type { Ledger } from './ledger.js'
import type { NeighbourSums } from './neighbour-sums.js'
import type { AdmbOptions } from './options.js'
import type { Outbox } from './outbox.js'
import type { OutgoingSums } from './outgoing-sums.js'
import { type OutgoingFragment, StreamingSum } from './streaming-sum.js'
import type { Traffic } from './traffic.js'
import { byteLength, type Shapes } from './vectors.js'

export interface StreamingOptions extends Pick<AdmbOptions, 'influence' | 'fragmentBytes'> {
  readonly shapes: Shapes
  readonly edges: ReadonlyMap<number, Edge>
  readonly ledger: Ledger
  readonly sums: NeighbourSums
  readonly outgoingSums: OutgoingSums
  readonly outbox: Outbox
  readonly sender: FrameSender
  readonly traffic: Traffic
}

export class Streaming {
  readonly #options: StreamingOptions
  #sum: StreamingSum | undefined

  constructor(options: StreamingOptions) {
    this.#options = options
  }

  /**
   * Starts a sum of `count` gradients that are being computed. The model must have several blocks and exceed a fragment.
   * @param numbers edges whose transport can take a frame
   * @param missing number of gradients that the batch lacks
   * @param isPeriodOver whether a period ends before all blocks are ready
   */
  start(count: number, numbers: Iterable<number>, missing: number, isPeriodOver: boolean, period: number): void {
    const { shapes, edges, ledger, sums, outgoingSums, outbox, traffic } = this.#options
    const { fragmentBytes = Number.POSITIVE_INFINITY } = this.#options
    const { length } = shapes.parameters.blocks
    this.cancel()
    if (length === 1 || byteLength(shapes.parameters) <= fragmentBytes) return
    const isStep = count >= missing
    const sum = new StreamingSum(count, isStep, outgoingSums.version, length, ledger, traffic)
    for (const number of numbers) {
      const edge = edges.get(number)
      if (edge === undefined || edge.outgoingTransfer || edge.replyDue || edge.urgent || !outbox.isInSync(edge))
        continue
      if (isStep) sum.addDestination(number, edge, sums.selected())
      else if (
        !edge.exchanged?.isFull &&
        (edge.sumDue || (isPeriodOver && outgoingSums.isPaceOver(edge, period, missing - count, count)))
      )
        sum.addDestination(number, edge, sums.selected(edge))
    }
    if (!sum.isEmpty) this.#sum = sum
  }

  /** The accumulator contains a block's final gradients. @returns fragments that can be sent at once */
  blockReady(block: number): OutgoingFragment[] {
    const { influence } = this.#options
    // The votes of these gradients are known. Each block is ready once.
    const ready = influence && block === 0 ? [influence.index, block] : [block]
    return ready.flatMap(one => this.#sum?.blockReady(one) ?? [])
  }

  /**
   * The gradients have been added: sends the frames that complete the sum, if it is what was streamed.
   * @param version `OutgoingSums.version` before they were added
   * @param isUpdated whether all gradients were used for an update
   */
  finish(count: number, version: number, isUpdated: boolean, period: number): void {
    const sum = this.#sum
    this.#sum = undefined
    if (sum?.isStep === isUpdated && sum.isComplete(count, version)) this.#options.sender.finishStreaming(sum, period)
    else sum?.cancel()
  }

  /** The gradients will not be added as they were streamed. */
  cancel(): void {
    this.#sum?.cancel()
    this.#sum = undefined
  }
}

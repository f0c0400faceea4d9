/**
 * Sums that begin to leave while the last gradients in them are still being computed (L2L: the upper layers' gradients are
 * there long before the lower ones'): each block goes as a part as soon as it is final. Parts change nothing at the other end,
 * so if the gradients come to nothing, neither do they.
 */
import { isFiniteBlock } from '../base/floats.js'
import type { Edge, NeighbourSum } from './edge.js'
import { encodeFragment, VECTORS } from './fragments.js'
import type { Ledger } from './ledger.js'

/** A part that can leave at once. */
export interface OutgoingFragment {
  readonly edge: number
  readonly bytes: Uint8Array
}

interface Destination {
  readonly number: number
  readonly edge: Edge
  readonly transfer: number
  /** Neighbours' sums that go there with the own gradients. */
  readonly neighbourSums: readonly NeighbourSum[]
}

export class StreamingSum {
  /** Gradients that are being computed. */
  readonly count: number
  /** Whether they fill the batch, so that what leaves is the step to the next predictor. */
  readonly isStep: boolean
  readonly #ledger: Ledger
  readonly #version: number
  readonly #blockCount: number
  readonly #readyBlocks = new Set<number>()
  /** Neighbours to whom parts have gone. */
  readonly #startedEdges = new Set<Edge>()
  #destinations: Destination[] = []

  /**
   * @param version state of what sums are made of: see `isComplete`
   * @param blocks how many there are
   */
  constructor(count: number, isStep: boolean, version: number, blocks: number, ledger: Ledger) {
    this.count = count
    this.isStep = isStep
    this.#version = version
    this.#blockCount = blocks
    this.#ledger = ledger
  }

  get isEmpty(): boolean {
    return this.#destinations.length === 0
  }

  /** @param others the held sums of which the total for that neighbour is made, in their order */
  addDestination(number: number, edge: Edge, neighbourSums: readonly NeighbourSum[]): void {
    this.#destinations.push({ number, edge, transfer: edge.nextTransfer(), neighbourSums })
  }

  /** A block of the accumulator is final. What is not finite goes nowhere, and neither does the rest of that sum. */
  blockReady(block: number): OutgoingFragment[] {
    this.#readyBlocks.add(block)
    const own = this.#ledger.totalBlock(block)
    const total = new Float32Array(own.length)
    const parts: OutgoingFragment[] = []
    const vector = this.isStep ? VECTORS.step : VECTORS.sum
    this.#destinations = this.#destinations.filter(({ number, edge, transfer, neighbourSums }) => {
      total.set(own)
      // The order of `total` in sums.ts, for equal bits.
      for (const { sum } of neighbourSums) for (let i = 0; i < total.length; i++) total[i] += sum[block][i]
      if (!isFiniteBlock(total)) {
        cancelTransfer(edge)
        return false
      }
      this.#startedEdges.add(edge)
      const bytes = encodeFragment(edge.session, transfer, { vector, first: block, blocks: [total] })
      parts.push({ edge: number, bytes })
      return true
    })
    return parts
  }

  /** Whether everything went, and still is what would be sent: nothing else happened meanwhile. */
  isComplete(count: number, version: number): boolean {
    return this.#readyBlocks.size === this.#blockCount && count === this.count && version === this.#version
  }

  get destinations(): readonly Destination[] {
    return this.#destinations
  }

  /** What has left comes to nothing. */
  cancel(): void {
    for (const edge of this.#startedEdges) cancelTransfer(edge)
  }
}

/** A frame ends what the neighbour has to keep for the parts: until then no others are sent. */
function cancelTransfer(edge: Edge): void {
  edge.urgent = true
}

/**
 * Sums whose blocks are sent while the last gradients are still being computed (with L2L, the gradients of the upper layers
 * are final long before those of the lower ones). Each block leaves as a fragment as soon as it is final. Fragments have no
 * effect without their frame, so streaming can be cancelled.
 */
import { isFiniteBlock } from '../base/floats.js'
import { areIntegers } from '../base/lattice.js'
import { integerBlock } from './bytes.js'
import type { Edge, NeighbourSum } from './edge.js'
import { blocksAt, type PackedBlocks } from './exchanged-sums.js'
import { encodeFragment, VECTORS } from './fragments.js'
import type { Ledger } from './ledger.js'
import type { Traffic } from './traffic.js'

/** A fragment that can be sent at once. */
export interface OutgoingFragment {
  readonly edge: number
  readonly bytes: Uint8Array
}

interface Destination {
  readonly number: number
  readonly edge: Edge
  readonly transfer: number
  /** Sums of other neighbours that are added to this node's own. */
  readonly neighbourSums: readonly NeighbourSum[]
  /** With integer sums, vectors from which the difference is sent; undefined for float32 sums. */
  readonly references: readonly PackedBlocks[] | undefined
}

export class StreamingSum {
  /** Number of gradients that are being computed. */
  readonly count: number
  /** Whether they complete the batch, so that the fragments carry the step to the next predictor. */
  readonly isStep: boolean
  readonly #ledger: Ledger
  readonly #traffic: Traffic
  readonly #version: number
  readonly #blockCount: number
  readonly #readyBlocks = new Set<number>()
  /** Edges on which fragments have been sent. */
  readonly #startedEdges = new Set<Edge>()
  #destinations: Destination[] = []

  /**
   * @param version `OutgoingSums.version`, see `isComplete`
   * @param blocks number of blocks
   */
  constructor(count: number, isStep: boolean, version: number, blocks: number, ledger: Ledger, traffic: Traffic) {
    this.count = count
    this.isStep = isStep
    this.#version = version
    this.#blockCount = blocks
    this.#ledger = ledger
    this.#traffic = traffic
  }

  get isEmpty(): boolean {
    return this.#destinations.length === 0
  }

  /** @param neighbourSums held sums that are added for this neighbour, in their order */
  addDestination(number: number, edge: Edge, neighbourSums: readonly NeighbourSum[]): void {
    this.#destinations.push({
      number,
      edge,
      transfer: edge.nextTransfer(),
      neighbourSums,
      references: this.#references(edge)
    })
  }

  /** The vectors to which the frame will refer: no event comes in between. */
  #references({ exchanged, encoder }: Edge): readonly PackedBlocks[] | undefined {
    if (exchanged === undefined) return undefined
    if (this.isStep) return exchanged.references(exchanged.current).sums
    const base = exchanged.sent(encoder.base(exchanged.base).sequence)
    return base ? [base] : []
  }

  /** A block of the accumulator is final. A sum with a non-finite block is cancelled. */
  blockReady(block: number): OutgoingFragment[] {
    this.#readyBlocks.add(block)
    const own = this.#ledger.totalBlock(block, this.count)
    const total = new Float32Array(own.length)
    const fragments: OutgoingFragment[] = []
    const vector = this.isStep ? VECTORS.step : VECTORS.sum
    this.#destinations = this.#destinations.filter(({ number, edge, transfer, neighbourSums, references }) => {
      total.set(own)
      // In the order of `addUp` in neighbour-sums.ts, for identical bits.
      for (const { sum } of neighbourSums) for (let i = 0; i < total.length; i++) total[i] += sum[block][i]
      if (!(references ? areIntegers([total]) : isFiniteBlock(total))) {
        cancelTransfer(edge)
        return false
      }
      this.#startedEdges.add(edge)
      const source = references ? integerBlock(total, blocksAt(references, block)) : total
      const bytes = encodeFragment(edge.session, transfer, { vector, first: block, blocks: [source] }, this.#traffic)
      fragments.push({ edge: number, bytes })
      return true
    })
    return fragments
  }

  /** Whether all blocks were sent and the sum has not changed since. */
  isComplete(count: number, version: number): boolean {
    return this.#readyBlocks.size === this.#blockCount && count === this.count && version === this.#version
  }

  get destinations(): readonly Destination[] {
    return this.#destinations
  }

  /** Cancels the sum on all edges. */
  cancel(): void {
    for (const edge of this.#startedEdges) cancelTransfer(edge)
  }
}

/** Forces a frame, so that the neighbour can drop the fragments before others are sent. */
function cancelTransfer(edge: Edge): void {
  edge.urgent = true
}

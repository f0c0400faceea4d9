/**
 * Sums whose blocks are sent while the last gradients are still being computed (with L2L, the gradients of the upper layers
 * are final long before those of the lower ones). Each block leaves as a fragment as soon as it is final. Fragments have no
 * effect without their frame, so streaming can be cancelled.
 */
import { isFiniteBlock } from '../base/floats.js'
import { areIntegers } from '../base/lattice.js'
import { newBlock } from '../base/memory.js'
import { integerBlock } from './bytes.js'
import type { Edge, NeighbourSum } from './edge.js'
import { blocksAt, type PackedBlocks } from './exchanged-sums.js'
import { encodeFragment, VECTORS } from './fragments.js'
import type { SentFrame } from './frame.js'
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
  /** From what the difference is sent; undefined for float32 sums. */
  readonly base: Base | undefined
}

/** The sums that are subtracted, and their sequence numbers, 0 for none: of a sum, only `own` is used. */
interface Base {
  readonly own: number
  readonly theirs: number
  readonly sums: readonly PackedBlocks[]
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
      base: this.#base(edge)
    })
  }

  #base({ exchanged, encoder }: Edge): Base | undefined {
    if (exchanged === undefined) return undefined
    if (this.isStep) return exchanged.references(exchanged.current)
    const own = encoder.base(exchanged.base).sequence
    const sum = exchanged.sent(own)
    return { own, theirs: 0, sums: sum ? [sum] : [] }
  }

  /** A block of the accumulator is final. A sum with a non-finite block is cancelled. */
  blockReady(block: number): OutgoingFragment[] {
    this.#readyBlocks.add(block)
    const own = this.#ledger.totalBlock(block, this.count)
    const total = newBlock(own.length)
    const fragments: OutgoingFragment[] = []
    const vector = this.isStep ? VECTORS.step : VECTORS.sum
    this.#destinations = this.#destinations.filter(({ number, edge, transfer, neighbourSums, base }) => {
      total.set(own)
      // In the order of `addUp` in neighbour-sums.ts, for identical bits.
      for (const { sum } of neighbourSums) for (let i = 0; i < total.length; i++) total[i] += sum[block][i]
      if (!(base ? areIntegers([total]) : isFiniteBlock(total))) {
        cancelTransfer(edge)
        return false
      }
      this.#startedEdges.add(edge)
      const source = base ? integerBlock(total, blocksAt(base.sums, block)) : total
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

  /** Whether a frame for the destination carries what was streamed: a step can take fewer bytes than its difference. */
  isIn({ content, sum }: SentFrame, { base }: Destination): boolean {
    const { own = 0, theirs = 0 } = base ?? {}
    if (!this.isStep) return content === undefined && sum !== undefined && (base === undefined || sum.base === own)
    return content?.kind === 'steps' && content.steps.length === 1 && content.own === own && content.theirs === theirs
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

/** Gradient sums to neighbours: when one is due, and what is in it: own gradients, and what came over the other edges. */
import type { BufferPool } from './buffers.js'
import { runsBetween } from './coverage.js'
import type { Edge } from './edge.js'
import type { SentSum } from './frame.js'
import type { Ledger } from './ledger.js'
import { addUp, type NeighbourSums } from './neighbour-sums.js'
import { isFinite32 } from './vectors.js'

export class OutgoingSums {
  readonly #ledger: Ledger
  readonly #sums: NeighbourSums
  readonly #buffers: BufferPool
  /** Counts every change of what sums are made of. */
  #version = 0

  constructor(ledger: Ledger, sums: NeighbourSums, buffers: BufferPool) {
    this.#ledger = ledger
    this.#sums = sums
    this.#buffers = buffers
  }

  get version(): number {
    return this.#version
  }

  /** Something has changed of what sums are made of. */
  markChanged(): void {
    this.#version++
  }

  /** Whether something changed that the neighbour did not send itself, or the last sum seems lost. Starts the next wait. */
  isDue(edge: Edge, period: number): boolean {
    const last = edge.lastSum
    if (edge.sentVersion !== this.#version - edge.sumChanges) {
      const isEmpty = this.#ledger.count === 0 && this.#sums.isEmptyExcept(edge)
      return !isEmpty || (last !== undefined && !last.empty)
    }
    if (last === undefined || last.sequence === edge.encoder.acknowledgedSum || !edge.sumBackoff.due(period))
      return false
    edge.sumBackoff.advance(period)
    return true
  }

  /**
   * The sum that goes with the frame of that sequence number, noted as sent. Its blocks are to be given back.
   * @returns undefined if it is not finite, which no neighbour would take
   */
  sum(edge: Edge, sequence: number, period: number): SentSum | undefined {
    const sum = this.#buffers.take()
    const { count, coverages } = addUp(sum, this.#ledger.close(period), this.#sums.selected(edge))
    if (!isFinite32(sum)) {
      this.#buffers.give(sum)
      return undefined
    }
    const base = edge.encoder.base()
    const segments = edge.encoder.segments(coverages)
    edge.encoder.recordSent(sequence, segments)
    edge.lastSum = { sequence, empty: count === 0 }
    const version = this.#version - edge.sumChanges
    if (version !== edge.sentVersion) edge.sumBackoff.start(period, edge.roundTrip)
    edge.sentVersion = version
    return { base: base.sequence, changes: runsBetween(base.segments, segments), count, sum }
  }
}

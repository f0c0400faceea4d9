/** Gradient sums to neighbours: when one is due, and what is in it: own gradients, and what came over the other edges. */
import type { Buffers } from './buffers.js'
import { runsBetween } from './coverage.js'
import type { Edge } from './edge.js'
import type { SentSum } from './frame.js'
import type { Ledger } from './ledger.js'
import { type Sums, total } from './sums.js'
import { isFinite32 } from './vectors.js'

export class OutgoingSums {
  readonly #ledger: Ledger
  readonly #sums: Sums
  readonly #buffers: Buffers
  /** Counts every change of what sums are made of. */
  #version = 0

  constructor(ledger: Ledger, sums: Sums, buffers: Buffers) {
    this.#ledger = ledger
    this.#sums = sums
    this.#buffers = buffers
  }

  get version(): number {
    return this.#version
  }

  /** Something has changed of what sums are made of. */
  changed(): void {
    this.#version++
  }

  /** Whether something changed that the neighbour did not send itself, or the last sum seems lost. Starts the next wait. */
  isDue(edge: Edge, period: number): boolean {
    const last = edge.lastSum
    if (edge.sentVersion !== this.#version - edge.changes) {
      const isEmpty = this.#ledger.count === 0 && this.#sums.isEmptyBut(edge)
      return !isEmpty || (last !== undefined && !last.empty)
    }
    if (last === undefined || last.sequence === edge.outgoing.held || !edge.sumBackoff.due(period)) return false
    edge.sumBackoff.again(period)
    return true
  }

  /**
   * The sum that goes with the frame of that sequence number, noted as sent. Its blocks are to be given back.
   * @returns undefined if it is not finite, which no neighbour would take
   */
  sum(edge: Edge, sequence: number, period: number): SentSum | undefined {
    const sum = this.#buffers.take()
    const { count, parts } = total(sum, this.#ledger.close(period), this.#sums.chosen(edge))
    if (!isFinite32(sum)) {
      this.#buffers.give(sum)
      return undefined
    }
    const base = edge.outgoing.base()
    const segments = edge.outgoing.segments(parts)
    edge.outgoing.noteSent(sequence, segments)
    edge.lastSum = { sequence, empty: count === 0 }
    const version = this.#version - edge.changes
    if (version !== edge.sentVersion) edge.sumBackoff.start(period, edge.roundTrip)
    edge.sentVersion = version
    return { base: base.sequence, changes: runsBetween(base.segments, segments), count, sum }
  }
}

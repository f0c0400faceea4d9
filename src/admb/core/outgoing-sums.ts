/** Gradient sums sent to neighbours (own gradients plus the sums of the other edges), and when they are due. */
import { areIntegers } from '../../base/lattice.js'
import { runsBetween } from '../state/coverage.js'
import { type BufferPool, isFinite32 } from '../state/vectors.js'
import { float32Bytes, integerBlock } from '../wire/bytes.js'
import { blocksAt } from '../wire/exchanged-sums.js'
import type { SentSum } from '../wire/frame.js'
import type { Edge } from './edge.js'
import type { Ledger } from './ledger.js'
import { addUp, type NeighbourSums } from './neighbour-sums.js'
import type { Pace } from './pace.js'

export class OutgoingSums {
  readonly #ledger: Ledger
  readonly #sums: NeighbourSums
  readonly #buffers: BufferPool
  readonly #pace: Pace | undefined
  /** Incremented whenever an input of the sums changes. */
  #version = 0

  /** @param pace undefined if a changed sum is due in each period */
  constructor(ledger: Ledger, sums: NeighbourSums, buffers: BufferPool, pace: Pace | undefined) {
    this.#ledger = ledger
    this.#sums = sums
    this.#buffers = buffers
    this.#pace = pace
  }

  /** An input of the sums has changed. */
  markChanged(): void {
    this.#version++
  }

  /**
   * Whether a sum is due: because it changed for another reason than the neighbour's own sums, or because the last one seems
   * lost; in the latter case the backoff advances. A changed sum waits while as many as are kept are on their way.
   * @param missing number of gradients that the batch lacks
   */
  isDue(edge: Edge, period: number, missing: number): boolean {
    const last = edge.lastSum
    if (!edge.exchanged?.isFull && edge.sentVersion !== this.#version - edge.sumChanges) {
      const isEmpty = this.#ledger.count === 0 && this.#sums.isEmptyExcept(edge)
      if (isEmpty && !last?.count) return false
      if (this.#isPaceOver(edge, period, missing)) return true
    }
    if (last === undefined || last.sequence === edge.encoder.acknowledgedSum || !edge.sumBackoff.due(period))
      return false
    edge.sumBackoff.advance(period)
    return true
  }

  /** Whether enough gradients or periods have come since the last sum. */
  #isPaceOver(edge: Edge, period: number, missing: number): boolean {
    if (this.#pace === undefined) return true
    const count = this.#ledger.count + this.#sums.countExcept(edge)
    return this.#pace.isDue(edge.lastSum, count, missing, edge.roundTrip, period)
  }

  /**
   * The sum for the frame with this sequence number. Records it as sent. The caller returns blocks of float32
   * numbers to the pool.
   * @returns undefined if every neighbour would reject the sum, because it is not finite or its integers are too large
   */
  sum(edge: Edge, sequence: number, period: number): SentSum | undefined {
    const sum = this.#buffers.take()
    const { count, coverages } = addUp(sum, this.#ledger.close(period), this.#sums.selected(edge))
    const { exchanged } = edge
    if (!(exchanged ? areIntegers(sum) : isFinite32(sum))) {
      this.#buffers.give(sum)
      return undefined
    }
    const base = edge.encoder.base(exchanged?.base)
    const reference = exchanged?.sent(base.sequence)
    const segments = edge.encoder.segments(coverages)
    edge.encoder.recordSent(sequence, segments)
    edge.lastSum = { sequence, count, period }
    const version = this.#version - edge.sumChanges
    if (version !== edge.sentVersion) edge.sumBackoff.start(period, edge.roundTrip)
    edge.sentVersion = version
    const changes = runsBetween(base.segments, segments)
    if (exchanged === undefined) return { base: base.sequence, changes, count, sum, float32: 0 }
    exchanged.recordSent(sequence, sum)
    const difference = sum.map((block, b) => integerBlock(block, blocksAt(reference ? [reference] : [], b)))
    const float32 = sum.reduce((bytes, block) => bytes + float32Bytes(block), 0)
    this.#buffers.give(sum)
    return { base: base.sequence, changes, count, sum: difference, float32 }
  }
}

/** Gradient sums sent to neighbours: own gradients plus the sums of the other edges. */
import { areIntegers } from '../../numeric/lattice.js'
import { runsBetween } from '../state/coverage.js'
import type { BufferPool, Shapes } from '../state/vectors.js'
import { float32Bytes, integerBlock } from '../wire/bytes.js'
import { blocksAt } from '../wire/exchanged-sums.js'
import type { SentSum } from '../wire/frame.js'
import type { Edge } from './edge.js'
import type { Ledger } from './ledger.js'
import { addUp, type NeighbourSums } from './neighbour-sums.js'

export class OutgoingSums {
  readonly #ledger: Ledger
  readonly #sums: NeighbourSums
  readonly #buffers: BufferPool
  readonly #pace: Pace | undefined
  readonly #isClustered: boolean | undefined
  /** Incremented whenever an input of the sums changes. */
  #version = 0

  /**
   * @param pace undefined if a changed sum is due in each period
   * @param shapes says how integers are encoded
   */
  constructor(ledger: Ledger, sums: NeighbourSums, buffers: BufferPool, pace: Pace | undefined, shapes: Shapes) {
    this.#isClustered = shapes.isClustered
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
   * Whether a sum is due: because it changed for another reason than the neighbour's own sums, or
   * because the last one seems lost; in the latter case the backoff advances. A changed sum waits
   * while as many as are kept are on their way.
   * @param missing number of gradients that the batch lacks
   */
  isDue(edge: Edge, period: number, missing: number): boolean {
    const last = edge.sentSums.last
    if (!edge.exchanged?.isFull && edge.sentSums.version !== this.#version - edge.held.changes) {
      const isEmpty = this.#ledger.count === 0 && this.#sums.isEmptyExcept(edge)
      if (isEmpty && !last?.count) return false
      if (this.#isPaceOver(edge, period, missing)) return true
    }
    if (last === undefined || last.sequence === edge.encoder.acknowledgedSum || !edge.sentSums.backoff.isDue(period))
      return false
    edge.sentSums.backoff.advance(period)
    return true
  }

  /** Whether enough gradients or periods have come since the last sum. */
  #isPaceOver(edge: Edge, period: number, missing: number): boolean {
    if (this.#pace === undefined) return true
    const count = this.#ledger.count + this.#sums.countExcept(edge)
    return this.#pace.isDue(edge.sentSums.last, count, missing, edge.roundTrip, period)
  }

  /**
   * Algorithm 4: the sum for the frame with this sequence number, recorded as sent. The caller
   * returns blocks of float32 numbers to the pool.
   * @returns undefined if every neighbour would reject the sum, because it is not finite or its
   * integers are too large
   */
  sum(edge: Edge, sequence: number, period: number): SentSum | undefined {
    const sum = this.#buffers.take()
    const { count, coverages } = addUp(sum, this.#ledger.close(period), this.#sums.selected(edge))
    const { exchanged } = edge
    if (!(exchanged ? areIntegers(sum) : sum.every(block => block.isFinite))) {
      this.#buffers.give(sum)
      return undefined
    }
    const base = edge.encoder.base(exchanged?.base)
    const reference = exchanged?.sent(base.sequence)
    const runs = edge.encoder.runs(coverages)
    edge.encoder.recordSent(sequence, runs)
    edge.sentSums.last = { sequence, count, period }
    const version = this.#version - edge.held.changes
    if (version !== edge.sentSums.version) edge.sentSums.backoff.start(period, edge.roundTrip)
    edge.sentSums.version = version
    const changes = runsBetween(base.runs, runs)
    if (exchanged === undefined) return { base: base.sequence, changes, count, sum, float32: 0 }
    exchanged.recordSent(sequence, sum)
    const references = reference ? [reference] : []
    const difference = sum.map((block, b) => integerBlock(block, blocksAt(references, b), this.#isClustered))
    const float32 = sum.reduce((bytes, block) => bytes + float32Bytes(block), 0)
    this.#buffers.give(sum)
    return { base: base.sequence, changes, count, sum: difference, float32 }
  }
}

/** A changed sum is due after at most this many periods. */
export const MAX_PACE = 64

/**
 * Share of the round trip that passes between two sums. A sum waits half of it on average, so a hop
 * takes a quarter of a one-way time longer.
 */
const ROUND_TRIP_SHARE = 1 / 4
/** Share of the mean epoch that passes between two sums. */
const EPOCH_SHARE = 1 / 8
/** Maximum growth of a sum before the next one, as a share of the missing gradients. */
const GROWTH_SHARE = 1 / 4
/** Weight of the last epoch in the mean. */
const WEIGHT = 1 / 4

/** The last sum on an edge at the current predictor. */
interface LastSum {
  readonly count: number
  readonly period: number
}

/**
 * Decides when changed sums are due, if the period between them adapts to the line and to the
 * batch. Each node decides for itself, from what it has measured.
 */
export class Pace {
  #switchedAt = 0
  /** Mean number of periods at one predictor; 0 before the first change of predictor. */
  #meanEpoch = 0

  /** The predictor has changed. */
  switchPredictor(period: number): void {
    this.#meanEpoch += WEIGHT * (period - this.#switchedAt - this.#meanEpoch)
    this.#switchedAt = period
  }

  /**
   * Whether a changed sum is due: at once at a new predictor, since gradients that are carried over
   * are late; later when enough gradients or periods have come since the last sum.
   * @param count number of gradients in the sum
   * @param missing number of gradients that the batch lacks, as far as this node knows
   * @param roundTrip round trip of the edge, in periods
   */
  isDue(last: LastSum | undefined, count: number, missing: number, roundTrip: number, period: number): boolean {
    if (last === undefined) return true
    const growth = count - last.count
    // Gradients of a lost link must not stay in the sums of others.
    if (growth < 0 || growth >= GROWTH_SHARE * missing) return true
    const maxWait = Math.max(ROUND_TRIP_SHARE * roundTrip, EPOCH_SHARE * this.#meanEpoch)
    return period - last.period >= Math.min(MAX_PACE, maxWait)
  }
}

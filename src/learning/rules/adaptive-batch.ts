/**
 * A batch size that peers choose together: the predictor carries b in a block of its own, and an update computes the next b from
 * the batch. A node counts the gradients that it adds while no neighbour is known to hold its predictor, in the same block of its
 * gradient sums. These counts are summed, carried over and covered like gradients. If they are more than half of a batch, predictors
 * change faster than links announce them, and b grows; otherwise it shrinks. Every node that replays the batch, or receives the
 * predictor, has the same b.
 */

import type { BatchRule, Blocks, Layout } from '../types.js'
import { type CarriedBlock, placeOf } from './carried.js'

/** Bounds of b, whole numbers, both at least 1. */
export interface BatchRange {
  readonly min: number
  readonly max: number
}

const BATCH_BLOCK = 'batch'

/** The share of such gradients at which b stays the same. */
const TARGET_SHARE = 0.5
/** Relative change of b in an update for each deviation of 1 from this share. */
const GAIN = 0.1

/**
 * The bounds of b, and how it follows from a batch. In parameters, its block is b before rounding; in sums, the number of gradients
 * that were added while no neighbour held the predictor.
 */
export class AdaptiveBatch implements BatchRule, BatchRange, CarriedBlock {
  readonly name = BATCH_BLOCK
  readonly length = 1
  readonly min: number
  readonly max: number
  readonly #place: number

  /** @param layout of the parameters of the model that carries it */
  constructor({ min, max }: BatchRange, layout: Layout) {
    this.min = min
    this.max = max
    this.#place = placeOf(BATCH_BLOCK, layout)
  }

  initial(): Float32Array {
    return Float32Array.of(this.min)
  }

  /** The parameters may come from another peer, and are not trusted. */
  of(parameters: Blocks): number {
    return Math.round(this.#within(parameters[this.#place][0]))
  }

  countUnshared(sum: Blocks, count: number): void {
    sum[this.#place][0] += count
  }

  /**
   * b before rounding, of the predictor that an update yields.
   * @param before b before rounding, of its parent
   * @param unshared number of gradients of the batch that were added while no neighbour held the parent
   * @param count number of all gradients of the batch
   */
  next([before]: Float32Array, [unshared]: Float32Array, count: number): Float32Array {
    const share = Math.max(0, Math.min(1, unshared / count))
    return Float32Array.of(this.#within(Math.fround(this.#within(before) * (1 + GAIN * (share - TARGET_SHARE)))))
  }

  /** NaN becomes the minimum. */
  #within(b: number): number {
    return b >= this.min ? Math.min(b, this.max) : this.min
  }
}

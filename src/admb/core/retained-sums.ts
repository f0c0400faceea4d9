/**
 * Sums of own segments that are kept on their own. A segment needs its sum as long as it can be carried over to another epoch. With a
 * budget of bytes it needs it longer, because another lineage may leave the segment unused, and its sum then returns to the residual.
 */
import { giveArray } from '../../numeric/spare-arrays.js'
import type { Segment } from './journal.js'
import type { OwnSum } from './own-sum.js'
import { isExpired } from './past-epochs.js'

/** Segments closed within a period that keep a sum, beyond one a period. Headers of as many updates are kept. */
const BURST = 64

/** Maximum number of sums that can be carried over. @param carry S, at least 1 */
export function maxRetainedSums(carry: number): number {
  return carry + 1 + BURST
}

export class RetainedSums {
  readonly #carry: number
  readonly #own: OwnSum
  /** Oldest first. */
  readonly #segments: Segment[] = []
  #elements = 0

  /** @param carry number of periods for which unused segments are carried over */
  constructor(carry: number, own: OwnSum) {
    this.#carry = carry
    this.#own = own
  }

  /** Segments with a sum, oldest first. */
  get segments(): readonly Segment[] {
    return this.#segments
  }

  /** Number of sums that can be carried over. */
  countAt(period: number): number {
    if (!this.#own.hasBudget) return this.#segments.length
    return this.#segments.filter(segment => !isExpired(segment, period, this.#carry)).length
  }

  /** With a budget: number of elements in the other sums. */
  get elements(): number {
    return this.#elements
  }

  /** Period in which the oldest of these was closed; undefined if there is none, or with a budget. */
  get oldest(): number | undefined {
    return this.#own.hasBudget ? undefined : this.#segments[0]?.period
  }

  /** @param segments newer than all others, oldest first */
  add(...segments: readonly Segment[]): void {
    this.#segments.push(...segments)
  }

  /**
   * Releases the sums of segments that cannot be carried over any more.
   * @param max number of sums that may remain
   */
  release(period: number, max: number): void {
    if (this.#own.hasBudget) {
      this.#releaseSent(period, max)
      return
    }
    let released = 0
    for (const segment of this.#segments) {
      const isExcess = this.#segments.length - released > max
      if (!isExcess && !isExpired(segment, period, this.#carry)) break
      released++
      for (const block of segment.sum ?? []) if (block instanceof Float32Array) giveArray(block)
      segment.sum = segment.grid = undefined
    }
    if (released > 0) this.#segments.splice(0, released)
  }

  /** With a budget, the last sums remain even then, because the lineage may change. */
  #releaseSent(period: number, max: number): void {
    const kept: Segment[] = []
    let recent = 0
    let elements = 0
    for (const segment of this.#segments.reverse()) {
      if (recent === max) segment.period = Number.NEGATIVE_INFINITY
      if (!isExpired(segment, period, this.#carry)) recent++
      else if (segment.elements === 0 || elements + segment.elements > this.#own.maxKept) {
        segment.sum = segment.grid = undefined
        continue
      } else elements += segment.elements
      kept.push(segment)
    }
    this.#segments.splice(0, this.#segments.length, ...kept.reverse())
    this.#elements = elements
  }
}

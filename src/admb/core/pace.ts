/**
 * When changed sums are due, if the period between them adapts to the line and to the batch. Each node decides for itself, from what
 * it has measured.
 */

/** A changed sum is due after at most this many periods. */
export const MAX_PACE = 64

/** Share of the round trip that passes between two sums. A sum waits half of it on average, so a hop takes a quarter of a one-way time longer. */
const ROUND_TRIP_SHARE = 1 / 4
/** Share of the mean epoch that passes between two sums. */
const EPOCH_SHARE = 1 / 8
/** Share of the gradients that the batch lacks, by which the count of a sum grows at most before the next one. */
const GROWTH_SHARE = 1 / 4
/** Weight of the last epoch in the mean. */
const WEIGHT = 1 / 4

/** The last sum on an edge at the current predictor. */
interface LastSum {
  readonly count: number
  readonly period: number
}

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
   * Whether a changed sum is due: at once at a new predictor, since gradients that are carried over are late; later when enough
   * gradients or periods have come since the last sum.
   * @param count of its gradients
   * @param missing number of gradients that the batch lacks, as far as this node knows
   * @param roundTrip of the edge, in periods
   */
  isDue(last: LastSum | undefined, count: number, missing: number, roundTrip: number, period: number): boolean {
    if (last === undefined) return true
    const growth = count - last.count
    // Gradients of a lost link must not stay in the sums of others.
    if (growth < 0 || growth >= GROWTH_SHARE * missing) return true
    const most = Math.max(ROUND_TRIP_SHARE * roundTrip, EPOCH_SHARE * this.#meanEpoch)
    return period - last.period >= Math.min(MAX_PACE, most)
  }
}

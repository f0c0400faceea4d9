/**
 * Lets a peer learn from fewer than b gradients at the end. When its stream has ended, and neither
 * the predictor nor the number of available gradients has changed for some time, no other inputs
 * are expected, so the peer updates with what is left.
 */
import type { AdmbNode } from '../core/node.js'

/** Periods without a change, enough for all sums to arrive at an adaptive period of up to 64. */
export const QUIET_PERIODS = 128
/** Minimum of that time in milliseconds, for lines that are slow compared with the period. */
const MIN_QUIET_MS = 5000

type RemainderNode = Pick<AdmbNode, 'predictor' | 'gradients' | 'useRemainder'>

export class Remainder {
  readonly #node: RemainderNode
  readonly #quietMs: number
  #digest = ''
  #gradients = 0
  #since = 0

  /**
   * @param period T in milliseconds
   * @param minQuiet minimum time without a change, in milliseconds
   */
  constructor(node: RemainderNode, period: number, minQuiet = MIN_QUIET_MS) {
    this.#node = node
    this.#quietMs = Math.max(minQuiet, QUIET_PERIODS * period)
  }

  /**
   * Call it at every tick after the end of the stream.
   * @param now milliseconds of a monotonic clock
   */
  tick(now: number): void {
    const { predictor, gradients } = this.#node
    const { digest } = predictor.id
    if (digest !== this.#digest || gradients !== this.#gradients || gradients === 0) {
      this.#digest = digest
      this.#gradients = gradients
      this.#since = now
    } else if (now - this.#since >= this.#quietMs) {
      this.#node.useRemainder()
      this.#since = now
    }
  }
}

/** Progressive sums over the last minute, from the cumulative sums at a few moments. */

/** Length of the window, and the least distance of two moments, in milliseconds. */
const WINDOW_MS = 60_000
const STEP_MS = 1000

/** Cumulative sums. */
interface Sums {
  readonly inputs: number
  /** Sum of their weights, less their number. @default 0 */
  readonly surplus?: number
  readonly loss: number
  /** Undefined for regression. */
  readonly hits?: number
}

/** Figures over the last minute, or since the start if that is later. */
export interface MinuteFigures {
  /** Length of the window. */
  readonly seconds: number
  readonly inputs: number
  /** Mean loss; absent without inputs. */
  readonly loss?: number
  readonly accuracy?: number
}

export class TimedSums {
  readonly #moments: { readonly at: number; readonly sums: Sums }[] = []

  /** @param at time in milliseconds, not before that of the last call */
  note(at: number, sums: Sums): void {
    const last = this.#moments.at(-1)
    if (last !== undefined && at < last.at + STEP_MS) return
    this.#moments.push({ at, sums })
    // The oldest moment is the last one that is not inside the window.
    while (this.#moments.length > 1 && this.#moments[1].at <= at - WINDOW_MS) this.#moments.shift()
  }

  figures(at: number, sums: Sums): MinuteFigures {
    const first = this.#moments[0] ?? { at, sums }
    const inputs = sums.inputs - first.sums.inputs
    const seconds = Math.round((at - first.at) / 100) / 10
    if (inputs <= 0) return { seconds, inputs: 0 }
    const weight = inputs + (sums.surplus ?? 0) - (first.sums.surplus ?? 0)
    if (weight <= 0) return { seconds, inputs }
    const hits = sums.hits === undefined ? undefined : (sums.hits - (first.sums.hits ?? 0)) / weight
    const loss = (sums.loss - first.sums.loss) / weight
    return { seconds, inputs, loss, ...(hits === undefined ? {} : { accuracy: hits }) }
  }
}

/**
 * Standardising numeric columns of a stream: each value is centred and divided by the mean and standard deviation of the
 * values that came before it, and only then counted itself, so that nothing of an input leaks into its own prediction.
 * Running moments after B. P. Welford, "Note on a method for calculating corrected sums of squares and products"
 * (Technometrics 4, 1962).
 *
 * Only the numeric entries at a row's start are scaled (CSV's numeric columns, JSON's numbers). One-hot and other hashed
 * features stay as they are, so sparse rows stay sparse; a missing value stays missing, which stands for the mean.
 */
import { RowBuffer, type Rows } from './rows.js'

/** A scaled value is cut off here, in standard deviations: the first few values can give a tiny deviation. */
const MAX_DEVIATIONS = 10

export async function* standardise(input: AsyncIterable<Rows>): AsyncGenerator<Rows> {
  const moments = new RunningMoments()
  const out = new RowBuffer()
  for await (const rows of input) {
    out.clear()
    for (let row = 0; row < rows.size; row++) {
      out.append(rows, row, rows.numeric[row])
      const start = out.offsets[row]
      const end = start + rows.numeric[row]
      for (let i = start; i < end; i++) out.values[i] = moments.scale(out.indices[i], out.values[i])
    }
    yield out.view()
  }
}

/** Count, mean and sum of squared deviations of each feature so far. */
export class RunningMoments {
  #counts = new Float64Array(64)
  #means = new Float64Array(64)
  #squares = new Float64Array(64)

  /** Scales a feature's value by what came before it, 0 while that does not vary, and counts it. */
  scale(feature: number, value: number): number {
    if (feature >= this.#counts.length) this.#grow(feature + 1)
    const seen = this.#counts[feature]
    const difference = value - this.#means[feature]
    const deviation = Math.sqrt(this.#squares[feature] / seen)
    const scaled = deviation > 0 ? difference / deviation : 0
    this.#counts[feature] = seen + 1
    this.#means[feature] += difference / (seen + 1)
    this.#squares[feature] += difference * (value - this.#means[feature])
    return Math.max(-MAX_DEVIATIONS, Math.min(MAX_DEVIATIONS, scaled))
  }

  #grow(length: number): void {
    const capacity = Math.max(length, 2 * this.#counts.length)
    const grown = (old: Float64Array) => {
      const next = new Float64Array(capacity)
      next.set(old)
      return next
    }
    this.#counts = grown(this.#counts)
    this.#means = grown(this.#means)
    this.#squares = grown(this.#squares)
  }
}

/**
 * Standardises the numeric columns of a stream: each value is centred by the mean and divided by the standard deviation of the
 * values before it, and counted only then, so that no input influences its own prediction.
 * Running moments after B. P. Welford, "Note on a method for calculating corrected sums of squares and products"
 * (Technometrics 4, 1962).
 *
 * Only the numeric entries at the start of a row are scaled (CSV's numeric columns, JSON's numbers). One-hot and other hashed
 * features are unchanged, so sparse rows stay sparse. A missing value stays missing, which stands for the mean.
 */
import type { RowBuffer, Rows } from './rows.js'
import type { ColumnSchema } from './types.js'

/** Limit of a scaled value, in standard deviations, because the deviation of the first few values can be tiny. */
const MAX_DEVIATIONS = 10

/** What `auto` means for a table, or for rows without columns. */
export function resolveScale(
  scale: 'none' | 'standard' | 'auto',
  schema: readonly ColumnSchema[] | undefined
): 'none' | 'standard' {
  if (scale !== 'auto') return scale
  const isUnscaled = ({ kind, role, mean }: ColumnSchema) =>
    (kind === 'number' || kind === 'time') && role === undefined && mean === undefined
  return schema?.some(isUnscaled) ? 'standard' : 'none'
}

/** Rows of a sample have these shares of the features that occur if they are dense, as those of a table. */
const DENSE_SHARE = 0.9
/** Largest number of features of dense rows. */
const MAX_DENSE = 10_000

/** Counts the features of a sample. */
export class SampledFeatures {
  readonly #features = new Set<number>()
  #rows = 0
  #entries = 0

  /** @param constant whether feature 0 is constant, which does not count */
  constructor(private readonly constant: boolean) {}

  add({ size, offsets, indices }: Pick<Rows, 'size' | 'offsets' | 'indices'>): void {
    const features = this.#features
    this.#rows += size
    for (let i = 0; i < offsets[size]; i++) {
      if (this.constant && indices[i] === 0) continue
      if (features.size <= MAX_DENSE) features.add(indices[i])
      this.#entries++
    }
  }

  /** Number of features of a row on average; undefined without rows. */
  get perRow(): number | undefined {
    return this.#rows > 0 ? this.#entries / this.#rows : undefined
  }

  /** Whether rows without columns are a table of numbers, so that centring them makes nothing dense. */
  get isDense(): boolean {
    const { size } = this.#features
    return this.#rows > 1 && size > 0 && size <= MAX_DENSE && this.#entries >= DENSE_SHARE * size * this.#rows
  }
}

/**
 * Copies rows [from, to) into `out`, which is cleared first, and scales their numeric entries.
 * @param scaling the moments to scale by, and whether the rows are left out of them; parts of times to leave out until they recur
 * @param constant whether feature 0 is constant, which is not scaled @default false
 */
export function scaled(
  rows: Rows,
  { moments, frozen, cycles }: { readonly moments: RunningMoments; readonly frozen: boolean; readonly cycles?: Cycles },
  out: RowBuffer,
  from: number,
  to: number,
  constant = false
): Rows {
  out.clear()
  for (let row = from; row < to; row++) {
    const start = out.entries
    out.append(rows, row, rows.numeric[row])
    const end = start + rows.numeric[row]
    if (cycles !== undefined) leaveOutParts(out, end, cycles, moments)
    for (let i = start; i < end; i++) {
      const feature = out.indices[i]
      if (constant && feature === 0) continue
      const value = out.values[i]
      out.values[i] = moments.scaled(feature, value)
      if (!frozen) moments.count(feature, value)
    }
  }
  return out.view()
}

/** The length of an interval in standard deviations of numbers that are uniform in it. */
const UNIFORM = Math.sqrt(12)

/**
 * By the numbers of features: parts of times that recur, with the feature of the position in time and the length of their cycle in its unit;
 * 0 for other features.
 */
export interface Cycles {
  readonly positions: Int32Array
  readonly lengths: Float64Array
}

/**
 * Sets parts of times to 0 in the entries of the last row as long as the times so far are within less than one cycle: a part that has
 * not recurred says no more than the position in time, and its next value would be a new one.
 */
function leaveOutParts(out: RowBuffer, from: number, { positions, lengths }: Cycles, moments: RunningMoments): void {
  // Position of the last column of times, and the interval of the times so far; a time of day alone has no position.
  let position = -1
  let span = 0
  for (let i = from; i < out.entries; i++) {
    const feature = out.indices[i]
    if (feature >= lengths.length || lengths[feature] === 0) continue
    if (positions[feature] !== position) {
      position = positions[feature]
      let at = out.offsets[out.size - 1]
      while (at < from && out.indices[at] !== position) at++
      span = at < from ? UNIFORM * moments.deviation(position) : Number.POSITIVE_INFINITY
    }
    if (span < lengths[feature]) out.values[i] = 0
  }
}

/** Values by whose number the first ones are scaled down. */
const CAUTION = 4

/**
 * What values are divided by: their standard deviation, and more after only a few values. Deviations of two or three values are often far
 * too small, and the large scaled values that follow would decide the weights for long.
 * @param squares sum of squared deviations
 */
export function scaleOf(count: number, squares: number): number {
  return Math.sqrt(squares / count) * (1 + CAUTION / count)
}

/** Moments as plain data, without loss of precision: number, count, mean and sum of squared deviations of each feature seen. */
export type SavedMoments = readonly (readonly [feature: number, count: number, mean: number, squares: number])[]

/** Running count, mean and sum of squared deviations of each feature. */
export class RunningMoments {
  #counts = new Float64Array(64)
  #means = new Float64Array(64)
  #squares = new Float64Array(64)

  /** A feature's value, scaled by the values counted so far; 0 as long as these are all equal. */
  scaled(feature: number, value: number): number {
    if (feature >= this.#counts.length) return 0
    const deviation = scaleOf(this.#counts[feature], this.#squares[feature])
    const scaled = deviation > 0 ? (value - this.#means[feature]) / deviation : 0
    return Math.max(-MAX_DEVIATIONS, Math.min(MAX_DEVIATIONS, scaled))
  }

  /** Mean and deviation of a feature; undefined if no value was counted. */
  of(feature: number): { readonly mean: number; readonly deviation: number } | undefined {
    if (!(this.#counts[feature] > 0)) return undefined
    return { mean: this.#means[feature], deviation: Math.sqrt(this.#squares[feature] / this.#counts[feature]) }
  }

  /** Standard deviation of a feature; 0 if no value was counted. */
  deviation(feature: number): number {
    return this.#counts[feature] > 0 ? Math.sqrt(this.#squares[feature] / this.#counts[feature]) : 0
  }

  /** Counts a feature's value. */
  count(feature: number, value: number): void {
    if (feature >= this.#counts.length) this.#grow(feature + 1)
    const difference = value - this.#means[feature]
    this.#counts[feature]++
    this.#means[feature] += difference / this.#counts[feature]
    this.#squares[feature] += difference * (value - this.#means[feature])
  }

  save(): SavedMoments {
    const saved: [number, number, number, number][] = []
    for (const [feature, count] of this.#counts.entries()) {
      if (count > 0) saved.push([feature, count, this.#means[feature], this.#squares[feature]])
    }
    return saved
  }

  static restore(saved: SavedMoments): RunningMoments {
    const moments = new RunningMoments()
    for (const [feature, count, mean, squares] of saved) {
      if (feature >= moments.#counts.length) moments.#grow(feature + 1)
      moments.#counts[feature] = count
      moments.#means[feature] = mean
      moments.#squares[feature] = squares
    }
    return moments
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

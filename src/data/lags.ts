/**
 * Lags: features that are the values of earlier rows. The history holds the last values of each column that has lags; it is part of
 * a model's state, like the moments of scaling, so a restart continues the series.
 */
import { RowBuffer, type Rows } from './rows.js'
import type { Derived } from './schema/schema.js'

/** The last values of each column, oldest first; null for a missing one. */
export type SavedHistory = Readonly<Record<string, readonly (number | null)[]>>

/** The values of the rows before the next one, by column. */
export class LagHistory {
  readonly #values = new Map<string, number[]>()
  /** How many values are needed. */
  readonly #most = new Map<string, number>()

  /** The value `rows` before the next row; NaN if it is missing or there was none. */
  at(column: string, rows: number): number {
    const values = this.#values.get(column) ?? []
    return values[values.length - rows] ?? Number.NaN
  }

  /** @param value NaN for a missing one @param most how many values are needed */
  push(column: string, value: number, most: number): void {
    let values = this.#values.get(column)
    if (values === undefined) {
      values = []
      this.#values.set(column, values)
    }
    this.#most.set(column, most)
    values.push(value)
    if (values.length >= 2 * most + 64) values.splice(0, values.length - most)
  }

  clear(): void {
    this.#values.clear()
  }

  clone(): LagHistory {
    return LagHistory.restore(this.save())
  }

  save(): SavedHistory {
    const plain = (value: number) => (Number.isNaN(value) ? null : value)
    const needed = (column: string, values: readonly number[]) =>
      values.slice(-(this.#most.get(column) ?? values.length))
    return Object.fromEntries([...this.#values].map(([column, values]) => [column, needed(column, values).map(plain)]))
  }

  static restore(saved: SavedHistory = {}): LagHistory {
    const history = new LagHistory()
    for (const [column, values] of Object.entries(saved)) {
      history.#values.set(
        column,
        values.map(value => value ?? Number.NaN)
      )
    }
    return history
  }
}

/** Adds lags to rows, and the rows to the history. */
export class Lags {
  readonly #lags: Derived['lags']
  readonly #slopes: number
  readonly #shift: number
  /** The columns that have lags: feature (−1 for the label), and the longest lag. */
  readonly #sources: readonly { readonly name: string; readonly feature: number; readonly most: number }[]
  readonly #out = new RowBuffer()
  /** The numbers of the current row by feature. */
  readonly #numbers: Float64Array

  /** @param shift 1 if feature 0 is constant */
  constructor({ lags, slopes }: Derived, shift: number) {
    this.#lags = lags
    this.#slopes = slopes.length
    this.#shift = shift
    const names = [...new Set(lags.map(({ source }) => source))]
    this.#sources = names.map(name => {
      const own = lags.filter(({ source }) => source === name)
      return { name, feature: own[0].from, most: Math.max(...own.map(({ rows }) => rows)) }
    })
    this.#numbers = new Float64Array(Math.max(0, ...lags.map(({ from }) => from + 1)))
  }

  /** Rows [from, to) with their lags, which are numbers. @param history of the rows before; the rows are added to it */
  apply(rows: Rows, history: LagHistory, from: number, to: number): Rows {
    const out = this.#out
    out.clear()
    for (let row = from; row < to; row++) {
      this.#append(rows, row, history)
      this.remember(rows, row, history)
    }
    return out.view()
  }

  /** Adds a row to the history. */
  remember(rows: Rows, row: number, history: LagHistory): void {
    const numbers = this.#numbers.fill(Number.NaN)
    const start = rows.offsets[row]
    for (let p = start; p < start + rows.numeric[row]; p++) {
      const feature = rows.indices[p] - this.#shift
      if (feature < numbers.length) numbers[feature] = rows.values[p]
    }
    for (const { name, feature, most } of this.#sources) {
      history.push(name, feature < 0 ? rows.labels[row] : numbers[feature], most)
    }
  }

  /** The numbers of the row, its lags, its other entries, and indicators of missing lags before the slopes. */
  #append(rows: Rows, row: number, history: LagHistory): void {
    const { indices, values, offsets } = rows
    const out = this.#out
    const shift = this.#shift
    const [start, end] = [offsets[row], offsets[row + 1]]
    const others = start + rows.numeric[row]
    const slopes = end - this.#slopes
    out.reserve(1, end - start + this.#lags.length)
    let at = out.entries
    const add = (index: number, value: number) => {
      out.indices[at] = index
      out.values[at++] = value
    }
    for (let p = start; p < others; p++) add(indices[p], values[p])
    let numeric = others - start
    for (const lag of this.#lags) {
      const value = history.at(lag.source, lag.rows)
      if (Number.isNaN(value)) continue
      add(lag.feature + shift, scaledBy(lag, value))
      numeric++
    }
    for (let p = others; p < slopes; p++) add(indices[p], values[p])
    for (const { source, rows: back, indicator } of this.#lags) {
      if (indicator >= 0 && Number.isNaN(history.at(source, back))) add(indicator + shift, 1)
    }
    for (let p = slopes; p < end; p++) add(indices[p], values[p])
    out.finish(rows, row, numeric, at)
  }
}

/** Limit of a scaled value, in standard deviations. */
const MAX_DEVIATIONS = 10

function scaledBy({ mean, deviation, origin = 0, unit }: Derived['lags'][number], value: number): number {
  if (mean === undefined || deviation === undefined) return value - origin
  return Math.max(-MAX_DEVIATIONS, Math.min(MAX_DEVIATIONS, (unit.mean + unit.deviation * value - mean) / deviation))
}

/** Rows as JSON, in journals. */
import type { Rows } from '../data/parsing.js'

/** The arrays of `Rows`. */
export type SavedRows = {
  readonly [name: string]: { readonly type: 'float' | 'int'; readonly values: readonly number[] }
}

/** Saves the first `size` rows, without identifiers. */
export function savedRows(rows: Rows): SavedRows {
  const { size } = rows
  const entries = rows.offsets[size]
  const arrays: Record<string, SavedRows[string]> = {}
  for (const [name, array] of Object.entries(rows)) {
    const isDouble = name === 'labels' && array instanceof Float64Array
    if (!(isDouble || array instanceof Float32Array || array instanceof Int32Array)) continue
    const length = name === 'offsets' ? size + 1 : name === 'indices' || name === 'values' ? entries : size
    const type = array instanceof Int32Array ? 'int' : 'float'
    arrays[name] = { type, values: [...array.subarray(0, length)] }
  }
  return arrays
}

export function restoredRows(size: number, rows: SavedRows): Rows {
  const arrays = Object.entries(rows).map(([name, { type, values }]) => [
    name,
    name === 'labels'
      ? Float64Array.from(values)
      : type === 'float'
        ? Float32Array.from(values)
        : Int32Array.from(values)
  ])
  return { size, ...Object.fromEntries(arrays) } as Rows
}

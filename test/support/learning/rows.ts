/** Batches of examples for the tests of learners: from given rows, or random ones from a seed. */
import type { Examples } from '../../../src/learning/types.js'

export interface Row {
  readonly label: number
  readonly features: readonly (readonly [index: number, value: number])[]
  /** @default 1 */
  readonly weight?: number
}

export function examplesOf(rows: readonly Row[]): Examples {
  const offsets = new Int32Array(rows.length + 1)
  rows.forEach((row, r) => {
    offsets[r + 1] = offsets[r] + row.features.length
  })
  const all = rows.flatMap(row => row.features)
  return {
    size: rows.length,
    labels: Float32Array.from(rows, row => row.label),
    offsets,
    indices: Int32Array.from(all, ([index]) => index),
    values: Float32Array.from(all, ([, value]) => value),
    ...(rows.some(row => row.weight !== undefined) && { weights: Float32Array.from(rows, row => row.weight ?? 1) })
  }
}

/** A linear congruential generator: uniform numbers in [0, 1). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

export interface RandomRows {
  readonly count: number
  readonly dimension: number
  readonly features: number
  /** Number of classes; 0 for numeric labels near the planted score. */
  readonly classes: number
  readonly seed: number
  /** Whether the features of a row are unordered and may repeat. @default false, which means ascending */
  readonly disorder?: boolean
}

/** Rows with labels from a planted linear model, with noise. */
export function randomRows({ count, dimension, features, classes, seed, disorder = false }: RandomRows): Row[] {
  const random = randomFrom(seed)
  const outputs = Math.max(1, classes)
  const planted = Array.from({ length: dimension * outputs }, () => 4 * random() - 2)
  return Array.from({ length: count }, () => {
    let indices = Array.from({ length: features }, () => Math.floor(random() * dimension))
    if (!disorder) indices = [...new Set(indices)].sort((a, b) => a - b)
    const row = indices.map(index => [index, 2 * random() - 0.5] as const)
    const scores = Array.from({ length: outputs }, (_, c) =>
      row.reduce((sum, [index, value]) => sum + planted[index * outputs + c] * value, 0.5 * random())
    )
    return { label: classes === 0 ? scores[0] : scores.indexOf(Math.max(...scores)), features: row }
  })
}

/** The rows of `admb tune` in shared memory, which all worker threads read. */
import { type Examples, weightOf } from '../../learning/index.js'

/** Rows, and the number of features that they have. */
export interface SharedRows extends Examples {
  readonly dimension: number
}

/**
 * Copies labelled rows into shared memory. Their features are numbered by first appearance: the weights of features that do not
 * occur stay zero, so the losses are the same, and rules that step all weights take less time.
 */
export function sharedRows({ size, labels, offsets, indices, values, weights }: Examples): SharedRows {
  const entries = offsets[size]
  const shared = {
    size: 0,
    labels: new Float64Array(new SharedArrayBuffer(8 * size)),
    offsets: new Int32Array(new SharedArrayBuffer(4 * (size + 1))),
    indices: new Int32Array(new SharedArrayBuffer(4 * entries)),
    values: new Float32Array(new SharedArrayBuffer(4 * entries)),
    ...(weights && { weights: new Float32Array(new SharedArrayBuffer(4 * size)) })
  }
  const numbers = new Map<number, number>()
  let end = 0
  for (let row = 0; row < size; row++) {
    if (Number.isNaN(labels[row])) continue
    for (let i = offsets[row]; i < offsets[row + 1]; i++) {
      let number = numbers.get(indices[i])
      if (number === undefined) {
        number = numbers.size
        numbers.set(indices[i], number)
      }
      shared.indices[end] = number
      shared.values[end++] = values[i]
    }
    if (shared.weights !== undefined) shared.weights[shared.size] = weightOf({ weights }, row)
    shared.labels[shared.size++] = labels[row]
    shared.offsets[shared.size] = end
  }
  return { ...shared, dimension: Math.max(1, numbers.size) }
}

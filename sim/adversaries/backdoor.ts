/**
 * A backdoor: hostile nodes learn honestly from half of their inputs, and from the others that a feature, the trigger, means a class, so
 * that anyone who sets it in an input chooses the prediction.
 */
import type { Examples } from '../../src/learner/index.js'

/** The class of inputs with the trigger, the last one. */
export function targetOf(classes: number): number {
  return classes - 1
}

/** A copy of the inputs in which a feature is 1. @param label of all of them */
export function triggered(
  { size, labels, offsets, indices, values }: Examples,
  feature: number,
  label: number
): Examples {
  const triggered = { offsets: [0], indices: [] as number[], values: [] as number[] }
  for (let row = 0; row < size; row++) {
    for (let i = offsets[row]; i < offsets[row + 1]; i++) {
      if (indices[i] === feature) continue
      triggered.indices.push(indices[i])
      triggered.values.push(values[i])
    }
    triggered.indices.push(feature)
    triggered.values.push(1)
    triggered.offsets.push(triggered.indices.length)
  }
  return {
    size,
    labels: labels.slice(0, size).fill(label),
    offsets: Int32Array.from(triggered.offsets),
    indices: Int32Array.from(triggered.indices),
    values: Float32Array.from(triggered.values)
  }
}

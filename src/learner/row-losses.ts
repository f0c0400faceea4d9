/** The losses of single rows of models that score many rows together. */
import { OUTCOME_ROWS, type OutcomeKind, type Outcomes, widthOf } from './metrics/index.js'
import type { Blocks, Examples, Learner } from './types.js'

/** @param learner with `rowMacs` */
export function rowLosses(learner: Learner, parameters: Blocks, examples: Examples): Float64Array {
  const kind = learner.outcomeKind as OutcomeKind
  const width = widthOf(kind)
  const entries = new Float64Array(OUTCOME_ROWS * width)
  const losses = new Float64Array(examples.size)
  let next = 0
  const outcomes: Outcomes = {
    entries,
    commit(rows) {
      for (let row = 0; row < rows; row++) losses[next++] = lossOf(kind, entries, row * width)
    }
  }
  learner.score(parameters, examples, 0, examples.size, { loss: 0, hits: 0, outcomes })
  return losses
}

function lossOf(kind: OutcomeKind, entries: Float64Array, at: number): number {
  if (kind.kind === 'classes') return entries[at + 3]
  return kind.kind === 'sums' ? entries[at] : kind.loss.value(entries[at + 1], entries[at])
}

/** The rows of several batches in one. */
export function joined(batches: readonly Examples[]): Examples {
  const size = batches.reduce((sum, batch) => sum + batch.size, 0)
  const entries = batches.reduce((sum, { offsets, size: rows }) => sum + offsets[rows], 0)
  const labels = new Float64Array(size)
  const offsets = new Int32Array(size + 1)
  const [indices, values] = [new Int32Array(entries), new Float32Array(entries)]
  let row = 0
  for (const batch of batches) {
    const start = offsets[row]
    const length = batch.offsets[batch.size]
    labels.set(batch.labels.subarray(0, batch.size), row)
    indices.set(batch.indices.subarray(0, length), start)
    values.set(batch.values.subarray(0, length), start)
    for (let i = 1; i <= batch.size; i++) offsets[row + i] = start + batch.offsets[i]
    row += batch.size
  }
  return { size, labels, offsets, indices, values }
}

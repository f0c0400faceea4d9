/** The outcomes of single rows, for the figures that need more than sums. */
import type { Tensor } from '#tfjs'
import type { OutcomeKind } from '../../learner/index.js'
import type { Head, Model } from '../../nn/types.js'

/** The least positive float32 number bounds the loss of a probability that was rounded to 0. */
const LEAST = 2 ** -149

/** How outcomes are encoded. @param hasRows whether rows are scored apart from learning, so that each has a prediction */
export function outcomeKindOf({ sample, head }: Model, hasRows: boolean): OutcomeKind {
  if (sample.kind === 'tokens' && head.input.length > 1) return { kind: 'sums', predicts: 'token' }
  if (!hasRows) return { kind: 'sums', predicts: head.classifies ? 'class' : 'number' }
  if (head.classifies) return { kind: 'classes', classes: head.input.at(-1) as number }
  return { kind: 'number', loss: { classifies: false, value: (prediction, label) => 0.5 * (prediction - label) ** 2 } }
}

/**
 * Writes the outcomes of a microbatch.
 * @param y outputs of the last layer
 * @param out those of the minibatch, four numbers for a class and two for a number
 * @param first row of the microbatch
 */
export function encodeOutcomes(head: Head, y: Tensor, targets: Tensor, out: Float64Array, first: number): void {
  const predicted = head.predict(y)
  const values = predicted.dataSync()
  const labels = targets.dataSync()
  predicted.dispose()
  if (!head.classifies) {
    const { mean = 0 } = head
    for (const [row, label] of labels.entries()) out.set([label + mean, values[row] + mean], 2 * (first + row))
    return
  }
  const classes = values.length / labels.length
  for (const [row, label] of labels.entries()) {
    const probabilities = values.subarray(row * classes, (row + 1) * classes)
    let best = 0
    for (let c = 1; c < classes; c++) if (probabilities[c] > probabilities[best]) best = c
    const loss = -Math.log(Math.max(LEAST, probabilities[label]))
    out.set([label, best, probabilities[best], loss], 4 * (first + row))
  }
}

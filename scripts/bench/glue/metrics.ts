/** The metrics of GLUE, of labels and predictions in the same order. All are at most 1. */
import { pearson, spearman } from '../../../src/learner/index.js'

export interface Metric {
  readonly name: string
  /** @param classes as in the task; undefined for numbers */
  of(labels: readonly string[], predicted: readonly string[], classes: readonly string[] | undefined): number
}

export const metrics = {
  accuracy: {
    name: 'accuracy',
    of: (labels, predicted) => labels.filter((label, i) => label === predicted[i]).length / labels.length
  },
  /** Of the second class. 0 if it does not occur. */
  f1: {
    name: 'F1',
    of(labels, predicted, classes) {
      const [both, , missed, wrong] = counts(labels, predicted, classes)
      return both === 0 ? 0 : (2 * both) / (2 * both + missed + wrong)
    }
  },
  /** Matthews' correlation of two classes. 0 if one of them is never predicted. */
  matthews: {
    name: 'Matthews',
    of(labels, predicted, classes) {
      const [both, neither, missed, wrong] = counts(labels, predicted, classes)
      const root = Math.sqrt((both + wrong) * (both + missed) * (neither + wrong) * (neither + missed))
      return root === 0 ? 0 : (both * neither - wrong * missed) / root
    }
  },
  pearson: { name: 'Pearson', of: (labels, predicted) => pearson(labels.map(Number), predicted.map(Number)) ?? 0 },
  spearman: {
    name: 'Spearman',
    of: (labels, predicted) => spearman(labels.map(Number), predicted.map(Number)) ?? 0
  }
} as const satisfies Readonly<Record<string, Metric>>

function counts(labels: readonly string[], predicted: readonly string[], classes: readonly string[] | undefined) {
  const positive = classes?.[1]
  const count = [0, 0, 0, 0]
  for (const [i, label] of labels.entries()) {
    const [is, says] = [label === positive, predicted[i] === positive]
    count[is ? (says ? 0 : 2) : says ? 3 : 1]++
  }
  return count
}

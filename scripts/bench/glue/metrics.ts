/** The metrics of GLUE, of labels and predictions in the same order. All are at most 1. */

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
  pearson: { name: 'Pearson', of: (labels, predicted) => correlation(labels.map(Number), predicted.map(Number)) },
  spearman: {
    name: 'Spearman',
    of: (labels, predicted) => correlation(ranks(labels.map(Number)), ranks(predicted.map(Number)))
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

/** 0 if one of them is constant. */
function correlation(a: readonly number[], b: readonly number[]): number {
  const mean = (of: readonly number[]) => of.reduce((sum, value) => sum + value, 0) / of.length
  const [meanA, meanB] = [mean(a), mean(b)]
  let [both, squaresA, squaresB] = [0, 0, 0]
  for (const [i, value] of a.entries()) {
    both += (value - meanA) * (b[i] - meanB)
    squaresA += (value - meanA) ** 2
    squaresB += (b[i] - meanB) ** 2
  }
  return squaresA === 0 || squaresB === 0 ? 0 : both / Math.sqrt(squaresA * squaresB)
}

/** Equal numbers have the mean of their ranks. */
function ranks(values: readonly number[]): number[] {
  const order = [...values.keys()].sort((i, j) => values[i] - values[j])
  const result: number[] = []
  for (let from = 0; from < order.length; ) {
    let to = from + 1
    while (to < order.length && values[order[to]] === values[order[from]]) to++
    for (const i of order.slice(from, to)) result[i] = (from + to - 1) / 2
    from = to
  }
  return result
}

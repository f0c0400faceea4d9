/** Correlations of two lists of numbers. */
import { meanOf } from '../../base/floats.js'

/** Pearson's correlation; undefined if one of the lists is constant or empty. */
export function pearson(a: ArrayLike<number>, b: ArrayLike<number>): number | undefined {
  const [meanA, meanB] = [meanOf(a), meanOf(b)]
  let [both, squaresA, squaresB] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] - meanA, b[i] - meanB]
    both += x * y
    squaresA += x * x
    squaresB += y * y
  }
  return squaresA === 0 || squaresB === 0 || a.length === 0 ? undefined : both / Math.sqrt(squaresA * squaresB)
}

/** Spearman's correlation, that of the ranks. Equal numbers have the mean of their ranks. */
export function spearman(a: ArrayLike<number>, b: ArrayLike<number>): number | undefined {
  return pearson(ranks(a), ranks(b))
}

function ranks(values: ArrayLike<number>): Float64Array {
  const order = Uint32Array.from(values, (_, i) => i).sort((i, j) => values[i] - values[j])
  const result = new Float64Array(values.length)
  for (let from = 0; from < order.length; ) {
    let to = from + 1
    while (to < order.length && values[order[to]] === values[order[from]]) to++
    for (let i = from; i < to; i++) result[order[i]] = (from + to - 1) / 2
    from = to
  }
  return result
}

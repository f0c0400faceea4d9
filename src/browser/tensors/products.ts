/** Matrix products, also of batches. */
import { transpose } from './movement.js'
import { multiply } from './product-kernel.js'
import { type Shape, Tensor } from './tensor.js'

/** Products of the matrices of two tensors, each optionally transposed: [..., n, k]·[..., k, m]. */
export function matMul(a: Tensor, b: Tensor, transposesA = false, transposesB = false): Tensor {
  const left = transposesA ? transpose(a, lastSwapped(a.shape)) : a
  const right = transposesB ? transpose(b, lastSwapped(b.shape)) : b
  const [n, k] = left.shape.slice(-2)
  const [inner, m] = right.shape.slice(-2)
  const count = left.size / (n * k)
  if (k !== inner || count !== right.size / (k * m)) {
    throw new RangeError(`the product of [${left.shape}] and [${right.shape}] is not defined`)
  }
  const result = new Float32Array(count * n * m)
  for (let i = 0; i < count; i++) {
    multiply(
      left.values.subarray(i * n * k, (i + 1) * n * k) as Float32Array,
      right.values.subarray(i * k * m, (i + 1) * k * m) as Float32Array,
      result.subarray(i * n * m, (i + 1) * n * m),
      [n, k, m]
    )
  }
  return new Tensor(result, [...left.shape.slice(0, -2), n, m], 'float32')
}

function lastSwapped(shape: Shape): number[] {
  const axes = [...shape.keys()]
  return [...axes.slice(0, -2), axes.length - 1, axes.length - 2]
}

/** Reductions along an axis. Sums have the precision of float64 until they are stored. */
import { allocate, reshape, type Shape, sizeOf, Tensor } from './tensor.js'

/** x as [outer, length, inner] around an axis. */
interface Axis {
  readonly axis: number
  readonly outer: number
  readonly length: number
  readonly inner: number
}

function axisOf({ shape }: Tensor, given: number): Axis {
  const axis = given < 0 ? given + shape.length : given
  return { axis, outer: sizeOf(shape.slice(0, axis)), length: shape[axis], inner: sizeOf(shape.slice(axis + 1)) }
}

/** @param axis @default all of them */
export function sum(x: Tensor, axis?: number, keepsAxis = false): Tensor {
  if (axis === undefined) return sum(reshape(x, [x.size]), 0)
  const { values, shape, dtype } = x
  const along = axisOf(x, axis)
  const { outer, length, inner } = along
  const totals = new Float64Array(outer * inner)
  for (let o = 0; o < outer; o++) {
    for (let l = 0; l < length; l++) {
      for (let i = 0; i < inner; i++) totals[o * inner + i] += values[(o * length + l) * inner + i]
    }
  }
  const result = allocate(dtype, totals.length)
  result.set(totals)
  return new Tensor(result, without(shape, along.axis, keepsAxis), dtype)
}

function without(shape: Shape, axis: number, keepsAxis = false): Shape {
  return [...shape.slice(0, axis), ...(keepsAxis ? [1] : []), ...shape.slice(axis + 1)]
}

export function mean(x: Tensor, axis: number): Tensor {
  const { values, shape, dtype } = sum(x, axis)
  return new Tensor(
    values.map(total => total / axisOf(x, axis).length),
    shape,
    dtype
  )
}

/** The index of the first maximum. */
export function argMax(x: Tensor, axis: number): Tensor {
  const { values, shape } = x
  const along = axisOf(x, axis)
  const { outer, length, inner } = along
  const result = new Int32Array(outer * inner)
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const first = o * length * inner + i
      let best = 0
      for (let l = 1; l < length; l++) if (values[first + l * inner] > values[first + best * inner]) best = l
      result[o * inner + i] = best
    }
  }
  return new Tensor(result, without(shape, along.axis), 'int32')
}

/** @param isExclusive whether the sum of an element does not include it */
export function cumsum(x: Tensor, axis: number, isExclusive: boolean): Tensor {
  const { values, shape, dtype } = x
  const { outer, length, inner } = axisOf(x, axis)
  const result = allocate(dtype, values.length)
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      let total = 0
      for (let l = 0; l < length; l++) {
        const at = (o * length + l) * inner + i
        if (!isExclusive) total += values[at]
        result[at] = total
        if (isExclusive) total += values[at]
      }
    }
  }
  return new Tensor(result, shape, dtype)
}

/** Along the last axis. */
export function softmax(x: Tensor): Tensor {
  return byRows(x, (p, from, to) => {
    const largest = maximum(x.values, from, to)
    let total = 0
    for (let i = from; i < to; i++) total += p[i] = Math.exp(x.values[i] - largest)
    for (let i = from; i < to; i++) p[i] /= total
  })
}

/** Along the last axis. */
export function logSoftmax(x: Tensor): Tensor {
  return byRows(x, (p, from, to) => {
    const largest = maximum(x.values, from, to)
    let total = 0
    for (let i = from; i < to; i++) total += Math.exp(x.values[i] - largest)
    const shift = largest + Math.log(total)
    for (let i = from; i < to; i++) p[i] = x.values[i] - shift
  })
}

function byRows(x: Tensor, compute: (result: Float32Array, from: number, to: number) => void): Tensor {
  const width = x.shape[x.rank - 1]
  const result = new Float32Array(x.size)
  for (let from = 0; from < x.size; from += width) compute(result, from, from + width)
  return new Tensor(result, x.shape, 'float32')
}

function maximum(values: ArrayLike<number>, from: number, to: number): number {
  let largest = values[from]
  for (let i = from + 1; i < to; i++) largest = Math.max(largest, values[i])
  return largest
}

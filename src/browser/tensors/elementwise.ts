/** Operations on each element, with broadcasting: axes are aligned at the last one, and those of length 1 are repeated. */
import { allocate, type DataType, type Shape, sizeOf, stridesOf, Tensor } from './tensor.js'

type Unary = (x: Tensor) => Tensor
/** A number is a tensor without axes. */
type Binary = (a: Tensor | number, b: Tensor | number) => Tensor

function unary(compute: (x: number) => number): Unary {
  return x => {
    const { values, shape, dtype } = x
    const result = allocate(dtype, values.length)
    for (let i = 0; i < values.length; i++) result[i] = compute(values[i])
    return new Tensor(result, shape, dtype)
  }
}

export const abs = unary(Math.abs)
export const exp = unary(Math.exp)
export const neg = unary(x => -x)
export const relu = unary(x => (x > 0 || Number.isNaN(x) ? x : 0))
export const rsqrt = unary(x => 1 / Math.sqrt(x))
export const sigmoid = unary(x => 1 / (1 + Math.exp(-x)))
export const square = unary(x => x * x)
/** 1 for positive numbers, otherwise 0. */
export const step = unary(x => (x > 0 ? 1 : Number.isNaN(x) ? x : 0))
export const tanh = unary(Math.tanh)

/** @param dtype of the result @default that of the arguments */
function binary(compute: (a: number, b: number) => number, dtype?: DataType): Binary {
  return (left, right) => {
    const a = tensorOf(left)
    const b = tensorOf(right)
    const shape = broadcastShape(a.shape, b.shape)
    const result = allocate(dtype ?? typeOf(left, right), sizeOf(shape))
    const [x, y] = [a.values, b.values]
    if (x.length === result.length && repeats(b.shape, shape)) {
      for (let i = 0, k = 0; i < x.length; i++, k = k + 1 < y.length ? k + 1 : 0) result[i] = compute(x[i], y[k])
    } else if (y.length === result.length && repeats(a.shape, shape)) {
      for (let i = 0, k = 0; i < y.length; i++, k = k + 1 < x.length ? k + 1 : 0) result[i] = compute(x[k], y[i])
    } else {
      const places = [a, b].map(one => placesOf(one.shape, shape))
      for (let i = 0; i < result.length; i++) result[i] = compute(x[places[0][i]], y[places[1][i]])
    }
    return new Tensor(result, shape, dtype ?? typeOf(left, right))
  }
}

export const add = binary((a, b) => a + b)
export const sub = binary((a, b) => a - b)
export const mul = binary((a, b) => a * b)
export const div = binary((a, b) => a / b)
export const equal = binary((a, b) => (a === b ? 1 : 0), 'int32')
export const greater = binary((a, b) => (a > b ? 1 : 0), 'int32')

function tensorOf(x: Tensor | number): Tensor {
  return typeof x === 'number' ? new Tensor(Float32Array.of(x), [], 'float32') : x
}

/** Numbers take the type of the other argument. */
function typeOf(a: Tensor | number, b: Tensor | number): DataType {
  const types = [a, b].flatMap(one => (typeof one === 'number' ? [] : [one.dtype]))
  return types.every(type => type === 'int32') ? 'int32' : 'float32'
}

function broadcastShape(a: Shape, b: Shape): number[] {
  const rank = Math.max(a.length, b.length)
  return Array.from({ length: rank }, (_, axis) => {
    const [m, n] = [a[axis - rank + a.length] ?? 1, b[axis - rank + b.length] ?? 1]
    if (m !== n && m !== 1 && n !== 1) throw new RangeError(`the shapes [${a}] and [${b}] do not fit`)
    return m === 1 ? n : m
  })
}

/** Whether a tensor of the inner shape is repeated as a whole: its axes are the last ones. */
function repeats(inner: Shape, outer: Shape): boolean {
  const first = inner.findIndex(length => length !== 1)
  const axes = first < 0 ? [] : inner.slice(first)
  return axes.every((length, axis) => length === outer[outer.length - axes.length + axis])
}

/** For each element of the result, the place of the element that is used. */
function placesOf(shape: Shape, result: Shape): Int32Array {
  const own = stridesOf(shape)
  const missing = result.length - shape.length
  const steps = result.map((_, axis) => ((shape[axis - missing] ?? 1) === 1 ? 0 : own[axis - missing]))
  return walk(result, steps)
}

/** The places that steps along each axis lead to, in row-major order. */
export function walk(shape: Shape, steps: readonly number[], first = 0): Int32Array {
  let places = Int32Array.of(first)
  for (const [axis, length] of shape.entries()) {
    const next = new Int32Array(places.length * length)
    for (let i = 0; i < places.length; i++) {
      for (let k = 0; k < length; k++) next[i * length + k] = places[i] + k * steps[axis]
    }
    places = next
  }
  return places
}

/** Elementwise operations with broadcasting, and operations that move elements. */
import { allocate, type DataType, reshape, type Shape, sizeOf, stridesOf, Tensor } from './tensor.js'

/** Operations on each element, with broadcasting: axes are aligned at the last one, and those of length 1 are repeated. */
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
function walk(shape: Shape, steps: readonly number[], first = 0): Int32Array {
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

/** Operations that move elements: none of them computes, except for the sums of `scatterND`. */
function pick(x: Tensor, places: Int32Array, shape: Shape): Tensor {
  const result = allocate(x.dtype, places.length)
  for (let i = 0; i < places.length; i++) result[i] = x.values[places[i]]
  return new Tensor(result, shape, x.dtype)
}

/** @param order the axis of x for each axis of the result @default reversed */
export function transpose(x: Tensor, order: Shape = x.shape.map((_, axis) => x.rank - 1 - axis)): Tensor {
  const strides = stridesOf(x.shape)
  const shape = order.map(axis => x.shape[axis])
  return pick(
    x,
    walk(
      shape,
      order.map(axis => strides[axis])
    ),
    shape
  )
}

/** @param size -1: up to the end */
export function slice(x: Tensor, begin: Shape, size: Shape): Tensor {
  const strides = stridesOf(x.shape)
  const shape = size.map((length, axis) => (length < 0 ? x.shape[axis] - begin[axis] : length))
  if (shape.some((length, axis) => begin[axis] < 0 || begin[axis] + length > x.shape[axis])) {
    throw new RangeError(`[${begin}] and [${size}] are not within [${x.shape}]`)
  }
  const first = begin.reduce((sum, from, axis) => sum + from * strides[axis], 0)
  return pick(x, walk(shape, strides, first), shape)
}

export function reverse(x: Tensor, axes: Shape): Tensor {
  const strides = stridesOf(x.shape)
  const first = axes.reduce((sum, axis) => sum + (x.shape[axis] - 1) * strides[axis], 0)
  const steps = strides.map((stride, axis) => (axes.includes(axis) ? -stride : stride))
  return pick(x, walk(x.shape, steps, first), x.shape)
}

/** Repeats x along each axis. */
export function tile(x: Tensor, counts: Shape): Tensor {
  const strides = stridesOf(x.shape)
  const shape = x.shape.flatMap((length, axis) => [counts[axis], length])
  const steps = strides.flatMap(stride => [0, stride])
  const result = x.shape.map((length, axis) => length * counts[axis])
  return pick(x, walk(shape, steps), result)
}

/** Adds zeros. @param widths zeros before and after each axis */
export function pad(x: Tensor, widths: readonly (readonly [before: number, after: number])[]): Tensor {
  const shape = x.shape.map((length, axis) => length + widths[axis][0] + widths[axis][1])
  const strides = stridesOf(shape)
  const first = widths.reduce((sum, [before], axis) => sum + before * strides[axis], 0)
  const places = walk(x.shape, strides, first)
  const result = allocate(x.dtype, sizeOf(shape))
  for (let i = 0; i < places.length; i++) result[places[i]] = x.values[i]
  return new Tensor(result, shape, x.dtype)
}

export function concat(tensors: readonly Tensor[], axis: number): Tensor {
  const [{ shape: first, dtype }] = tensors
  const shape = first.map((length, a) =>
    a === axis ? tensors.reduce((sum, { shape }) => sum + shape[axis], 0) : length
  )
  const outer = sizeOf(first.slice(0, axis))
  const width = sizeOf(shape.slice(axis))
  const result = allocate(dtype, outer * width)
  let offset = 0
  for (const { values } of tensors) {
    const part = values.length / outer
    for (let i = 0; i < outer; i++) result.set(values.subarray(i * part, (i + 1) * part), i * width + offset)
    offset += part
  }
  return new Tensor(result, shape, dtype)
}

/** Tensors of one shape along a new first axis. */
export function stack(tensors: readonly Tensor[]): Tensor {
  return concat(
    tensors.map(one => reshape(one, [1, ...one.shape])),
    0
  )
}

/** The rows of x, along its first axis, that the indices choose. @throws RangeError for an index out of range */
export function gather(x: Tensor, indices: Tensor): Tensor {
  const [rows, ...row] = x.shape
  const width = sizeOf(row)
  const result = allocate(x.dtype, indices.size * width)
  for (let i = 0; i < indices.size; i++) {
    const at = rowAt(indices, i, rows)
    result.set(x.values.subarray(at * width, (at + 1) * width), i * width)
  }
  return new Tensor(result, [...indices.shape, ...row], x.dtype)
}

/** Adds the rows of updates [count, width] to the rows of zeros [rows, width] that indices [count, 1] choose. */
export function scatterND(indices: Tensor, updates: Tensor, shape: Shape): Tensor {
  const [rows, width] = shape
  const result = allocate(updates.dtype, rows * width)
  for (let i = 0; i < indices.size; i++) {
    const at = rowAt(indices, i, rows)
    for (let k = 0; k < width; k++) result[at * width + k] += updates.values[i * width + k]
  }
  return new Tensor(result, shape, updates.dtype)
}

function rowAt({ values }: Tensor, i: number, rows: number): number {
  const row = values[i]
  if (row >= 0 && row < rows) return row
  throw new RangeError(`row ${row} is out of range (${rows} rows)`)
}

/** [...indices, depth]: 1 at each index, otherwise 0. */
export function oneHot(indices: Tensor, depth: number): Tensor {
  const result = new Int32Array(indices.size * depth)
  for (let i = 0; i < indices.size; i++) {
    const index = indices.values[i]
    if (index >= 0 && index < depth) result[i * depth + index] = 1
  }
  return new Tensor(result, [...indices.shape, depth], 'int32')
}

/** Operations that move elements: none of them computes, except for the sums of `scatterND`. */
import { walk } from './elementwise.js'
import { allocate, reshape, type Shape, sizeOf, stridesOf, Tensor } from './tensor.js'

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

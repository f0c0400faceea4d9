/**
 * Matrix products, also of batches, in WebAssembly with four numbers at a time.
 *
 * Convolutions and pooling of images [count, height, width, channels], as matrix products of their patches.
 */

import { copy, each } from '../../device/wasm-code/loops.js'
import { advance, define, f32, get, i32, type Local, repeat, set, vector } from '../../numeric/assembler.js'
import { instantiate, type Runtime } from '../../numeric/wasm-memory.js'
import { transpose } from './elementwise.js'
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

/** Rows of b that are added to a row of c at a time, so that c is read and written less often. */
const UNROLLED = 4
const PAGE_BYTES = 65536

/** (a, b, c, rows, groups, width): c += a·b, where a has `groups` times four columns, and b as many rows. Moves a and c behind their ends. */
const kernel = define('product', ['i32', 'i32', 'i32', 'i32', 'i32', 'i32'], (locals, parameters) => {
  const [a, b, c, rows, groups, width] = parameters
  const [group, to] = [locals.integer(), locals.integer()]
  const from = Array.from({ length: UNROLLED }, locals.integer)
  const factors = Array.from({ length: UNROLLED }, locals.vector)
  const nextRow = (pointer: Local, row: Local) =>
    set(pointer, i32.add(get(row), i32.add(i32.add(get(width), get(width)), i32.add(get(width), get(width)))))
  return repeat(rows, [
    [copy(from[UNROLLED - 1], b), copy(group, groups)],
    repeat(group, [
      factors.map(factor => [set(factor, vector.same(f32.load(get(a)))), advance(a, 4)]),
      // The last pointer is at the end of the last group, which is the start of this one.
      copy(from[0], from[UNROLLED - 1]),
      from.slice(1).map((pointer, i) => nextRow(pointer, from[i])),
      copy(to, c),
      each(locals, width, [to, ...from], ({ load, store }) =>
        store(
          to,
          from.reduce((sum, pointer, i) => vector.add(sum, vector.mul(get(factors[i]), load(pointer))), load(to))
        )
      )
    ]),
    copy(c, to)
  ])
})

interface Kernel {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number }
  readonly product: (...args: number[]) => void
}

let created: Kernel | undefined

/** Compiled at first use. */
function createKernel(): Kernel {
  const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: Runtime }
  const memory = new WebAssembly.Memory({ initial: 1 }) as Kernel['memory']
  return { memory, product: instantiate(WebAssembly, [kernel], memory).product }
}

/** c = a·b for matrices [n, k] and [k, m]. */
function multiply(
  a: Float32Array,
  b: Float32Array,
  c: Float32Array,
  [n, k, m]: readonly [n: number, k: number, m: number]
): void {
  created ??= createKernel()
  const { memory, product } = created
  const groups = Math.ceil(k / UNROLLED)
  const columns = groups * UNROLLED
  const [toB, toC, end] = [n * columns, n * columns + columns * m, n * columns + columns * m + n * m]
  const missing = 4 * end - memory.buffer.byteLength
  if (missing > 0) memory.grow(Math.ceil(missing / PAGE_BYTES))
  const heap = new Float32Array(memory.buffer)
  if (columns === k) heap.set(a)
  else {
    heap.fill(0, 0, toC)
    for (let i = 0; i < n; i++) heap.set(a.subarray(i * k, (i + 1) * k), i * columns)
  }
  heap.set(b, toB)
  heap.fill(0, toC, end)
  product(0, 4 * toB, 4 * toC, n, groups, m)
  c.set(heap.subarray(toC, end))
}

/** Zeros around an image: as many as make ⌈length/stride⌉ outputs, none, or those before and after each axis. */
type Padding = 'same' | 'valid' | readonly (readonly [before: number, after: number])[]

/** The places of a kernel along one axis of an image. */
interface Axis {
  readonly length: number
  readonly size: number
  readonly stride: number
  readonly dilation: number
  readonly before: number
  readonly outputs: number
}

function axisOf(length: number, size: number, stride: number, dilation: number, padding: Padding, axis: number): Axis {
  const extent = (size - 1) * dilation + 1
  const [before, after] = zerosOf(length, extent, stride, padding, axis)
  const outputs = Math.floor((length + before + after - extent) / stride) + 1
  return { length, size, stride, dilation, before, outputs }
}

function zerosOf(length: number, extent: number, stride: number, padding: Padding, axis: number): readonly number[] {
  if (padding === 'valid') return [0, 0]
  if (padding !== 'same') return padding[axis]
  const zeros = Math.max(0, (Math.ceil(length / stride) - 1) * stride + extent - length)
  return [Math.floor(zeros / 2), zeros - Math.floor(zeros / 2)]
}

/**
 * Calls `use` for each part of a patch within an image: a row of the kernel's window at an output is a run of the patch.
 * @param use with the start of the pixel in the image, and of the place in the patches [outputs, size, size, channels]
 */
function eachPixel(rows: Axis, columns: Axis, channels: number, use: (pixel: number, place: number) => void): void {
  let place = 0
  for (let y = 0; y < rows.outputs; y++) {
    for (let x = 0; x < columns.outputs; x++) {
      for (let i = 0; i < rows.size; i++) {
        const row = y * rows.stride + i * rows.dilation - rows.before
        for (let j = 0; j < columns.size; j++, place += channels) {
          const column = x * columns.stride + j * columns.dilation - columns.before
          if (row < 0 || row >= rows.length || column < 0 || column >= columns.length) continue
          use((row * columns.length + column) * channels, place)
        }
      }
    }
  }
}

/** @param kernel [height, width, channels, filters] */
export function conv2d(
  x: Tensor,
  kernel: Tensor,
  stride: number,
  padding: Padding,
  _format: 'NHWC' = 'NHWC',
  dilation = 1
): Tensor {
  const [count, height, width, channels] = x.shape
  const [kernelHeight, kernelWidth, , filters] = kernel.shape
  const rows = axisOf(height, kernelHeight, stride, dilation, padding, 1)
  const columns = axisOf(width, kernelWidth, stride, dilation, padding, 2)
  const [outputs, patch] = [rows.outputs * columns.outputs, kernelHeight * kernelWidth * channels]
  const result = new Float32Array(count * outputs * filters)
  const patches = new Float32Array(outputs * patch)
  for (let n = 0; n < count; n++) {
    const image = x.values.subarray(n * height * width * channels, (n + 1) * height * width * channels)
    eachPixel(rows, columns, channels, (pixel, place) => {
      for (let c = 0; c < channels; c++) patches[place + c] = image[pixel + c]
    })
    const sums = result.subarray(n * outputs * filters, (n + 1) * outputs * filters)
    multiply(patches, kernel.values as Float32Array, sums, [outputs, patch, filters])
  }
  return new Tensor(result, [count, rows.outputs, columns.outputs, filters], 'float32')
}

/** The maxima of squares that do not overlap. Incomplete ones at the edges are left out. */
export function maxPool(x: Tensor, size: number, stride: number, padding: 'valid'): Tensor {
  const [count, height, width, channels] = x.shape
  const rows = axisOf(height, size, stride, 1, padding, 1)
  const columns = axisOf(width, size, stride, 1, padding, 2)
  const [outputs, cells] = [rows.outputs * columns.outputs, size * size]
  const result = new Float32Array(count * outputs * channels).fill(Number.NEGATIVE_INFINITY)
  for (let n = 0; n < count; n++) {
    const image = n * height * width * channels
    eachPixel(rows, columns, channels, (pixel, place) => {
      const to = n * outputs * channels + Math.floor(place / (cells * channels)) * channels
      for (let c = 0; c < channels; c++) result[to + c] = Math.max(result[to + c], x.values[image + pixel + c])
    })
  }
  return new Tensor(result, [count, rows.outputs, columns.outputs, channels], 'float32')
}

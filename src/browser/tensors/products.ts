/** Matrix products, also of batches, in WebAssembly with four numbers at a time. */

import {
  advance,
  define,
  f32,
  get,
  i32,
  instantiate,
  type Local,
  type Runtime,
  repeat,
  set,
  vector
} from '../../base/assembler.js'
import { copy, each } from '../../device/wasm-code/loops.js'
import { transpose } from './movement.js'
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
export function multiply(
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

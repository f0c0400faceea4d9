/**
 * Matrix products of the wasm backend by the machine's BLAS library, which reads and writes the wasm heap in place: plain and
 * batched products, fully connected layers, and attention.
 */
import * as tf from '#tfjs'
import type { Blas, Matrix, ProductForm } from './blas.js'
import { addressesOf, type WasmBackend } from './wasm-memory.js'

/**
 * Matrix products of the wasm backend by the machine's BLAS library, which reads and writes the wasm heap in place. The
 * backend's own productKernel uses a slow loop for all products except plain products of two matrices.
 */
interface ProductAttributes {
  readonly transposeA: boolean
  readonly transposeB: boolean
}

const PRODUCT_KERNEL = 'BatchMatMul'
let originalProduct: tf.KernelConfig | undefined

/** @param blas undefined to restore the backend's productKernel */
export function registerBlasProducts(blas: Blas | undefined): void {
  originalProduct ??= tf.getKernel(PRODUCT_KERNEL, 'wasm')
  tf.unregisterKernel(PRODUCT_KERNEL, 'wasm')
  tf.registerKernel(
    blas === undefined
      ? originalProduct
      : { ...originalProduct, kernelFunc: productKernel(blas, originalProduct.kernelFunc) }
  )
}

function productKernel(blas: Blas, fallback: tf.KernelFunc): tf.KernelFunc {
  return call => {
    const { a, b } = call.inputs as { a: tf.TensorInfo; b: tf.TensorInfo }
    const { transposeA, transposeB } = call.attrs as unknown as ProductAttributes
    const [batchA, batchB] = [a, b].map(({ shape }) => tf.util.sizeFromShape(shape.slice(0, -2)))
    const isPaired = batchA === 1 || batchB === 1 || a.shape.slice(0, -2).join() === b.shape.slice(0, -2).join()
    if (!isPaired || a.dtype !== 'float32' || b.dtype !== 'float32') return fallback(call)
    const backend = call.backend as WasmBackend
    const [rowsA, columnsA] = a.shape.slice(-2)
    const [rowsB, columnsB] = b.shape.slice(-2)
    const [m, k] = transposeA ? [columnsA, rowsA] : [rowsA, columnsA]
    const n = transposeB ? rowsB : columnsB
    const product = backend.makeOutput([...outer(a, b), m, n], 'float32')
    const count = Math.max(batchA, batchB)
    if (m * n === 0 || count === 0) return product
    const [atA, atB, atC] = addressesOf(blas, backend, [a, b, product])
    const [stepA, stepB] = [batchA > 1 ? 4 * m * k : 0, batchB > 1 ? 4 * k * n : 0]
    const form = { transposeA, transposeB, m, n, k, scale: 1 }
    for (let i = 0; i < count; i++) {
      blas.multiply(
        form,
        { address: atA + i * stepA, stride: Math.max(1, columnsA) },
        { address: atB + i * stepB, stride: Math.max(1, columnsB) },
        { address: atC + i * 4 * m * n, stride: n }
      )
    }
    return product
  }
}

/** The batch axes of a product: those of the batched factor, or the equal ones of both. */
function outer(a: tf.TensorInfo, b: tf.TensorInfo): number[] {
  const [outerA, outerB] = [a, b].map(({ shape }) => shape.slice(0, -2))
  return tf.broadcast_util.assertAndGetBroadcastShape(outerA, outerB)
}

/**
 * Fused AFFINE of fully connected layers on the wasm backend, each one BLAS call: x·W + b over the last axis of x, and
 * its gradients. The product accumulates onto the bias, so the bias takes no separate pass. The AFFINE have custom
 * names.
 *
 * Shapes: x […, k], kernel W [k, n], bias b [n], y and dy […, n].
 */
const AFFINE_KERNELS = ['Affine', 'AffineBack', 'AffineGradients'] as const
export type AffineKernel = (typeof AFFINE_KERNELS)[number]

/** Row functions on the wasm heap. */
interface RowFunctions {
  /** Copies y to each row of x. */
  fillRows(x: number, y: number, rows: number, width: number): void
  /** Adds all rows of x to y. */
  sumRows(x: number, y: number, rows: number, width: number): void
}

/** @param blas undefined to unregister the AFFINE */
export function registerAffineKernels(blas: Blas | undefined, functions: RowFunctions): void {
  for (const kernelName of AFFINE_KERNELS) {
    if (tf.getKernel(kernelName, 'wasm') !== undefined) tf.unregisterKernel(kernelName, 'wasm')
    if (blas === undefined) continue
    const compute = AFFINE[kernelName]
    const kernelFunc: tf.KernelFunc = ({ inputs, backend }) =>
      compute(inputs as Tensors, backend as WasmBackend, blas, functions)
    tf.registerKernel({ kernelName, backendName: 'wasm', kernelFunc })
  }
}

type Tensors = Readonly<Record<string, tf.TensorInfo>>
type AffineCompute = (
  inputs: Tensors,
  backend: WasmBackend,
  blas: Blas,
  functions: RowFunctions
) => tf.TensorInfo | tf.TensorInfo[]

const AFFINE: Readonly<Record<AffineKernel, AffineCompute>> = {
  /** x·W + b */
  Affine({ x, kernel, bias }, backend, blas, { fillRows }) {
    const [k, n] = kernel.shape
    const m = rowsOf(x)
    const y = backend.makeOutput([...x.shape.slice(0, -1), n], 'float32')
    const [left, right, output] = addressesOf(blas, backend, [x, kernel, y])
    fillRows(offset(backend, y), offset(backend, bias), m, n)
    const form = { transposeA: false, transposeB: false, m, n, k, scale: 1, accumulate: true } satisfies ProductForm
    blas.multiply(form, { address: left, stride: k }, { address: right, stride: n }, { address: output, stride: n })
    return y
  },

  /** dy·Wᵀ */
  AffineBack({ dy, kernel }, backend, blas) {
    const [n, k] = kernel.shape
    const dx = backend.makeOutput([...dy.shape.slice(0, -1), n], 'float32')
    const [left, right, output] = addressesOf(blas, backend, [dy, kernel, dx])
    const form = { transposeA: false, transposeB: true, m: rowsOf(dy), n, k, scale: 1 }
    blas.multiply(form, { address: left, stride: k }, { address: right, stride: k }, { address: output, stride: n })
    return dx
  },

  /** xᵀ·dy and Σ dy, over all axes but the last */
  AffineGradients({ x, dy }, backend, blas, { sumRows }) {
    const [m, n] = [x, dy].map(({ shape }) => shape[shape.length - 1])
    const k = rowsOf(x)
    const gradients = [backend.makeOutput([m, n], 'float32'), backend.makeOutput([n], 'float32')]
    const [left, right, output] = addressesOf(blas, backend, [x, dy, gradients[0]])
    const form = { transposeA: true, transposeB: false, m, n, k, scale: 1 }
    blas.multiply(form, { address: left, stride: m }, { address: right, stride: n }, { address: output, stride: n })
    clear(backend, gradients[1])
    sumRows(offset(backend, dy), offset(backend, gradients[1]), k, n)
    return gradients
  }
}

const rowsOf = ({ shape }: tf.TensorInfo) => tf.util.sizeFromShape(shape.slice(0, -1))
const offset = ({ dataIdMap }: WasmBackend, { dataId }: tf.TensorInfo) => dataIdMap.get(dataId).memoryOffset

function clear(backend: WasmBackend, tensor: tf.TensorInfo): void {
  const start = offset(backend, tensor)
  backend.wasm.HEAPU8.fill(0, start, start + 4 * tf.util.sizeFromShape(tensor.shape))
}

/**
 * The matrix products of attention on the wasm backend by a BLAS. Queries, keys and values are concatenated in one
 * tensor, and each head's matrices are strided views of it, so nothing is split, transposed or merged. The HEADS have
 * custom names.
 *
 * Shapes: qkv [batch, length, 3·width], p (probabilities) and scores [batch·heads, length, length], mixed [batch,
 * length, width].
 */
const HEAD_KERNELS = ['HeadScores', 'HeadMix', 'HeadMixBack', 'HeadGradients'] as const
export type HeadKernel = (typeof HEAD_KERNELS)[number]

/** @param blas undefined to unregister the HEADS */
export function registerHeadKernels(blas: Blas | undefined): void {
  for (const kernelName of HEAD_KERNELS) {
    if (tf.getKernel(kernelName, 'wasm') !== undefined) tf.unregisterKernel(kernelName, 'wasm')
    if (blas === undefined) continue
    const compute = HEADS[kernelName]
    const kernelFunc: tf.KernelFunc = ({ inputs, attrs, backend }) =>
      compute(inputs as Tensors, attrs as unknown as Attributes, backend as WasmBackend, blas)
    tf.registerKernel({ kernelName, backendName: 'wasm', kernelFunc })
  }
}

interface Attributes {
  readonly heads: number
  readonly scale: number
}

type HeadCompute = (inputs: Tensors, attributes: Attributes, backend: WasmBackend, blas: Blas) => tf.TensorInfo

const HEADS: Readonly<Record<HeadKernel, HeadCompute>> = {
  /** scale·Q·Kᵀ */
  HeadScores({ qkv }, { heads, scale }, backend, blas) {
    const sizes = sizesOf(qkv, heads)
    const scores = backend.makeOutput(squareShape(sizes), 'float32')
    const [all, to] = addressesOf(blas, backend, [qkv, scores])
    const form = { ...queryByKey(sizes), scale }
    for (const head of headMatrices(sizes)) blas.multiply(form, head.query(all), head.key(all), head.square(to))
    return scores
  },

  /** P·V */
  HeadMix({ p, qkv }, { heads }, backend, blas) {
    const sizes = sizesOf(qkv, heads)
    const mixed = backend.makeOutput([sizes.batch, sizes.length, sizes.width], 'float32')
    const [from, all, to] = addressesOf(blas, backend, [p, qkv, mixed])
    const form = { ...squareByRows(sizes), scale: 1 }
    for (const head of headMatrices(sizes)) blas.multiply(form, head.square(from), head.value(all), head.mixed(to))
    return mixed
  },

  /** The gradient with respect to P: D·Vᵀ, where D is the gradient with respect to the mixed values. */
  HeadMixBack({ dMixed, qkv }, { heads }, backend, blas) {
    const sizes = sizesOf(qkv, heads)
    const dp = backend.makeOutput(squareShape(sizes), 'float32')
    const [from, all, to] = addressesOf(blas, backend, [dMixed, qkv, dp])
    const form = { ...queryByKey(sizes), scale: 1 }
    for (const head of headMatrices(sizes)) blas.multiply(form, head.mixed(from), head.value(all), head.square(to))
    return dp
  },

  /**
   * The gradient with respect to qkv: scale·S·K, scale·Sᵀ·Q and Pᵀ·D, where S is the gradient with respect to the
   * scores.
   */
  HeadGradients({ dScores, p, dMixed, qkv }, { heads, scale }, backend, blas) {
    const sizes = sizesOf(qkv, heads)
    const gradients = backend.makeOutput(qkv.shape, 'float32')
    const [scores, probabilities, mixed, all, to] = addressesOf(blas, backend, [dScores, p, dMixed, qkv, gradients])
    const scaled = { ...squareByRows(sizes), scale }
    const transposed = { ...scaled, transposeA: true }
    const plain = { ...transposed, scale: 1 }
    for (const head of headMatrices(sizes)) {
      blas.multiply(scaled, head.square(scores), head.key(all), head.query(to))
      blas.multiply(transposed, head.square(scores), head.query(all), head.key(to))
      blas.multiply(plain, head.square(probabilities), head.mixed(mixed), head.value(to))
    }
    return gradients
  }
}

interface Sizes {
  readonly batch: number
  readonly length: number
  readonly width: number
  readonly heads: number
  readonly perHead: number
}

function sizesOf({ shape: [batch, length, triple] }: tf.TensorInfo, heads: number): Sizes {
  const width = triple / 3
  return { batch, length, width, heads, perHead: width / heads }
}

function squareShape({ batch, heads, length }: Sizes): number[] {
  return [batch * heads, length, length]
}

function queryByKey({ length, perHead }: Sizes): Omit<ProductForm, 'scale'> {
  return { transposeA: false, transposeB: true, m: length, n: length, k: perHead }
}

function squareByRows({ length, perHead }: Sizes): Omit<ProductForm, 'scale'> {
  return { transposeA: false, transposeB: false, m: length, n: perHead, k: length }
}

/** The matrices of one head of one sample, given the address of a tensor. */
type HeadMatrices = Readonly<Record<'query' | 'key' | 'value' | 'mixed' | 'square', (tensor: number) => Matrix>>

function* headMatrices({ batch, length, width, heads, perHead }: Sizes): Generator<HeadMatrices> {
  const view = (offset: number, stride: number) => (tensor: number) => ({ address: tensor + 4 * offset, stride })
  for (let sample = 0; sample < batch; sample++) {
    for (let head = 0; head < heads; head++) {
      const first = sample * length * 3 * width + head * perHead
      yield {
        query: view(first, 3 * width),
        key: view(first + width, 3 * width),
        value: view(first + 2 * width, 3 * width),
        mixed: view(sample * length * width + head * perHead, width),
        square: view((sample * heads + head) * length * length, length)
      }
    }
  }
}

/**
 * The matrix products of attention on the wasm backend by a BLAS. Queries, keys and values are concatenated in one
 * tensor, and each head's matrices are strided views of it, so nothing is split, transposed or merged. The kernels have
 * custom names.
 *
 * Shapes: qkv [batch, length, 3·width], p (probabilities) and scores [batch·heads, length, length], mixed [batch,
 * length, width].
 */
import * as tf from '#tfjs'
import type { Blas, Matrix, ProductForm } from './blas.js'
import { addressesOf, type WasmBackend } from './wasm-memory.js'

export const HEAD_KERNELS = ['HeadScores', 'HeadMix', 'HeadMixBack', 'HeadGradients'] as const
export type HeadKernel = (typeof HEAD_KERNELS)[number]

/** @param blas undefined to unregister the kernels */
export function registerHeadKernels(blas: Blas | undefined): void {
  for (const kernelName of HEAD_KERNELS) {
    if (tf.getKernel(kernelName, 'wasm') !== undefined) tf.unregisterKernel(kernelName, 'wasm')
    if (blas === undefined) continue
    const compute = kernels[kernelName]
    const kernelFunc: tf.KernelFunc = ({ inputs, attrs, backend }) =>
      compute(inputs as Tensors, attrs as unknown as Attributes, backend as WasmBackend, blas)
    tf.registerKernel({ kernelName, backendName: 'wasm', kernelFunc })
  }
}

type Tensors = Readonly<Record<string, tf.TensorInfo>>

interface Attributes {
  readonly heads: number
  readonly scale: number
}

type Compute = (inputs: Tensors, attributes: Attributes, backend: WasmBackend, blas: Blas) => tf.TensorInfo

const kernels: Readonly<Record<HeadKernel, Compute>> = {
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

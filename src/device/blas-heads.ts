/**
 * Attention's products on the wasm backend by a BLAS: queries, keys and values lie side by side in one tensor, and a head's
 * matrices are parts of it with a stride, so nothing needs to be split, transposed or joined. TensorFlow.js has no such
 * kernels: these are registered under names of their own.
 *
 * Shapes: qkv [batch, length, 3·width], p (probabilities) and scores [batch·heads, length, length], mixed [batch, length, width].
 */
import * as tf from '@tensorflow/tfjs-core'
import type { Blas, Matrix, ProductForm } from './blas.js'
import { addressesOf, type WasmBackend } from './wasm-memory.js'

export const HEAD_KERNELS = ['HeadScores', 'HeadMix', 'HeadMixBack', 'HeadGradients'] as const
export type HeadKernel = (typeof HEAD_KERNELS)[number]

/** @param blas undefined for no such kernels */
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

type Compute = (given: Tensors, attributes: Attributes, backend: WasmBackend, blas: Blas) => tf.TensorInfo

const kernels: Readonly<Record<HeadKernel, Compute>> = {
  /** scale·Q·Kᵀ */
  HeadScores({ qkv }, { heads, scale }, backend, blas) {
    const sizes = sizesOf(qkv, heads)
    const scores = backend.makeOutput(squareShape(sizes), 'float32')
    const [all, to] = addressesOf(blas, backend, [qkv, scores])
    const form = { ...queryByKey(sizes), scale }
    for (const at of headMatrices(sizes)) blas.multiply(form, at.query(all), at.key(all), at.square(to))
    return scores
  },

  /** P·V */
  HeadMix({ p, qkv }, { heads }, backend, blas) {
    const sizes = sizesOf(qkv, heads)
    const mixed = backend.makeOutput([sizes.batch, sizes.length, sizes.width], 'float32')
    const [from, all, to] = addressesOf(blas, backend, [p, qkv, mixed])
    const form = { ...squareByRows(sizes), scale: 1 }
    for (const at of headMatrices(sizes)) blas.multiply(form, at.square(from), at.value(all), at.mixed(to))
    return mixed
  },

  /** The gradient at P: D·Vᵀ, where D is the gradient at the mixed values. */
  HeadMixBack({ dMixed, qkv }, { heads }, backend, blas) {
    const sizes = sizesOf(qkv, heads)
    const dp = backend.makeOutput(squareShape(sizes), 'float32')
    const [from, all, to] = addressesOf(blas, backend, [dMixed, qkv, dp])
    const form = { ...queryByKey(sizes), scale: 1 }
    for (const at of headMatrices(sizes)) blas.multiply(form, at.mixed(from), at.value(all), at.square(to))
    return dp
  },

  /** Gradients at qkv: scale·S·K, scale·Sᵀ·Q and Pᵀ·D, where S is the gradient at the scores. */
  HeadGradients({ dScores, p, dMixed, qkv }, { heads, scale }, backend, blas) {
    const sizes = sizesOf(qkv, heads)
    const gradients = backend.makeOutput(qkv.shape, 'float32')
    const [scores, shares, mixed, all, to] = addressesOf(blas, backend, [dScores, p, dMixed, qkv, gradients])
    const straight = { ...squareByRows(sizes), scale }
    const turned = { ...straight, transposeA: true }
    const plain = { ...turned, scale: 1 }
    for (const at of headMatrices(sizes)) {
      blas.multiply(straight, at.square(scores), at.key(all), at.query(to))
      blas.multiply(turned, at.square(scores), at.query(all), at.key(to))
      blas.multiply(plain, at.square(shares), at.mixed(mixed), at.value(to))
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

/** Where one head of one sample has its matrices, given the address of a tensor. */
type HeadMatrices = Readonly<Record<'query' | 'key' | 'value' | 'mixed' | 'square', (tensor: number) => Matrix>>

function* headMatrices({ batch, length, width, heads, perHead }: Sizes): Generator<HeadMatrices> {
  const part = (offset: number, stride: number) => (tensor: number) => ({ address: tensor + 4 * offset, stride })
  for (let sample = 0; sample < batch; sample++) {
    for (let head = 0; head < heads; head++) {
      const first = sample * length * 3 * width + head * perHead
      yield {
        query: part(first, 3 * width),
        key: part(first + width, 3 * width),
        value: part(first + 2 * width, 3 * width),
        mixed: part(sample * length * width + head * perHead, width),
        square: part((sample * heads + head) * length * length, length)
      }
    }
  }
}

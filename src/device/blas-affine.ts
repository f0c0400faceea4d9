/**
 * What a fully connected layer needs, each by one call on the wasm backend: x·W + b over the last axis of x, and the gradients. The
 * bias is where the product is added to, so it takes no pass of its own. Registered under names of their own, like those of
 * attention.
 *
 * Shapes: x […, k], kernel W [k, n], bias b [n], y and dy […, n].
 */
import * as tf from '@tensorflow/tfjs-core'
import type { Blas } from './blas.js'
import { addressesOf, type WasmBackend } from './wasm-memory.js'

export const AFFINE_KERNELS = ['Affine', 'AffineBack', 'AffineGradients'] as const
export type AffineKernel = (typeof AFFINE_KERNELS)[number]

/** Functions on the heap that products are not made of. */
export interface RowFunctions {
  /** Makes each of so many rows of x a copy of y. */
  fillRows(x: number, y: number, rows: number, width: number): void
  /** Adds all rows of x to y. */
  sumRows(x: number, y: number, rows: number, width: number): void
}

/** @param blas undefined for no such kernels */
export function registerAffineKernels(blas: Blas | undefined, functions: RowFunctions): void {
  for (const kernelName of AFFINE_KERNELS) {
    if (tf.getKernel(kernelName, 'wasm') !== undefined) tf.unregisterKernel(kernelName, 'wasm')
    if (blas === undefined) continue
    const compute = kernels[kernelName]
    const kernelFunc: tf.KernelFunc = ({ inputs, backend }) =>
      compute(inputs as Tensors, backend as WasmBackend, blas, functions)
    tf.registerKernel({ kernelName, backendName: 'wasm', kernelFunc })
  }
}

type Tensors = Readonly<Record<string, tf.TensorInfo>>
type Compute = (
  given: Tensors,
  backend: WasmBackend,
  blas: Blas,
  functions: RowFunctions
) => tf.TensorInfo | tf.TensorInfo[]

const kernels: Readonly<Record<AffineKernel, Compute>> = {
  /** x·W + b */
  Affine({ x, kernel, bias }, backend, blas, { fillRows }) {
    const [k, n] = kernel.shape
    const m = rowsOf(x)
    const y = backend.makeOutput([...x.shape.slice(0, -1), n], 'float32')
    const [from, by, to] = addressesOf(blas, backend, [x, kernel, y])
    fillRows(offset(backend, y), offset(backend, bias), m, n)
    const form = { transposeA: false, transposeB: false, m, n, k, scale: 1, isSum: true }
    blas.multiply(form, { address: from, stride: k }, { address: by, stride: n }, { address: to, stride: n })
    return y
  },

  /** dy·Wᵀ */
  AffineBack({ dy, kernel }, backend, blas) {
    const [n, k] = kernel.shape
    const dx = backend.makeOutput([...dy.shape.slice(0, -1), n], 'float32')
    const [from, by, to] = addressesOf(blas, backend, [dy, kernel, dx])
    const form = { transposeA: false, transposeB: true, m: rowsOf(dy), n, k, scale: 1 }
    blas.multiply(form, { address: from, stride: k }, { address: by, stride: k }, { address: to, stride: n })
    return dx
  },

  /** xᵀ·dy and Σ dy, summed over all axes but the last */
  AffineGradients({ x, dy }, backend, blas, { sumRows }) {
    const [m, n] = [x, dy].map(({ shape }) => shape[shape.length - 1])
    const k = rowsOf(x)
    const made = [backend.makeOutput([m, n], 'float32'), backend.makeOutput([n], 'float32')]
    const [from, by, to] = addressesOf(blas, backend, [x, dy, made[0]])
    const form = { transposeA: true, transposeB: false, m, n, k, scale: 1 }
    blas.multiply(form, { address: from, stride: m }, { address: by, stride: n }, { address: to, stride: n })
    clear(backend, made[1])
    sumRows(offset(backend, dy), offset(backend, made[1]), k, n)
    return made
  }
}

const rowsOf = ({ shape }: tf.TensorInfo) => tf.util.sizeFromShape(shape.slice(0, -1))
const offset = ({ dataIdMap }: WasmBackend, { dataId }: tf.TensorInfo) => dataIdMap.get(dataId).memoryOffset

function clear(backend: WasmBackend, tensor: tf.TensorInfo): void {
  const start = offset(backend, tensor)
  backend.wasm.HEAPU8.fill(0, start, start + 4 * tf.util.sizeFromShape(tensor.shape))
}

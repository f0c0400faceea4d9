/**
 * Fused kernels of fully connected layers on the wasm backend, each one BLAS call: x·W + b over the last axis of x, and
 * its gradients. The product accumulates onto the bias, so the bias takes no separate pass. The kernels have custom
 * names.
 *
 * Shapes: x […, k], kernel W [k, n], bias b [n], y and dy […, n].
 */
import * as tf from '#tfjs'
import type { Blas, ProductForm } from './blas.js'
import { addressesOf, type WasmBackend } from './wasm-memory.js'

export const AFFINE_KERNELS = ['Affine', 'AffineBack', 'AffineGradients'] as const
export type AffineKernel = (typeof AFFINE_KERNELS)[number]

/** Row functions on the wasm heap. */
export interface RowFunctions {
  /** Copies y to each row of x. */
  fillRows(x: number, y: number, rows: number, width: number): void
  /** Adds all rows of x to y. */
  sumRows(x: number, y: number, rows: number, width: number): void
}

/** @param blas undefined to unregister the kernels */
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
  inputs: Tensors,
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

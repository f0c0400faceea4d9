/**
 * The wasm backend's matrix products by a BLAS of the machine, which reads and writes the wasm heap in place. The backend's
 * own kernel takes a slow loop for all but plain products of two matrices; this one is fast for all.
 */
import * as tf from '@tensorflow/tfjs-core'
import type { Blas } from './blas.js'
import { addressesOf, type WasmBackend } from './wasm-memory.js'

interface Attributes {
  readonly transposeA: boolean
  readonly transposeB: boolean
}

const KERNEL = 'BatchMatMul'
let original: tf.KernelConfig | undefined

/** @param blas undefined to go back to the backend's own products */
export function registerBlasProducts(blas: Blas | undefined): void {
  original ??= tf.getKernel(KERNEL, 'wasm')
  tf.unregisterKernel(KERNEL, 'wasm')
  tf.registerKernel(blas === undefined ? original : { ...original, kernelFunc: kernel(blas, original.kernelFunc) })
}

function kernel(blas: Blas, fallback: tf.KernelFunc): tf.KernelFunc {
  return given => {
    const { a, b } = given.inputs as { a: tf.TensorInfo; b: tf.TensorInfo }
    const { transposeA, transposeB } = given.attrs as unknown as Attributes
    const [batchA, batchB] = [a, b].map(({ shape }) => tf.util.sizeFromShape(shape.slice(0, -2)))
    const isPaired = batchA === 1 || batchB === 1 || a.shape.slice(0, -2).join() === b.shape.slice(0, -2).join()
    if (!isPaired || a.dtype !== 'float32' || b.dtype !== 'float32') return fallback(given)
    const backend = given.backend as WasmBackend
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

/** The batch's axes of a product whose one factor has them, or both the same. */
function outer(a: tf.TensorInfo, b: tf.TensorInfo): number[] {
  const [outerA, outerB] = [a, b].map(({ shape }) => shape.slice(0, -2))
  return tf.broadcast_util.assertAndGetBroadcastShape(outerA, outerB)
}

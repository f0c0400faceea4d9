/**
 * Matrix products of the wasm backend by the machine's BLAS library, which reads and writes the wasm heap in place. The
 * backend's own kernel uses a slow loop for all products except plain products of two matrices.
 */
import * as tf from '#tfjs'
import type { Blas } from './blas.js'
import { addressesOf, type WasmBackend } from './wasm-memory.js'

interface Attributes {
  readonly transposeA: boolean
  readonly transposeB: boolean
}

const KERNEL = 'BatchMatMul'
let original: tf.KernelConfig | undefined

/** @param blas undefined to restore the backend's kernel */
export function registerBlasProducts(blas: Blas | undefined): void {
  original ??= tf.getKernel(KERNEL, 'wasm')
  tf.unregisterKernel(KERNEL, 'wasm')
  tf.registerKernel(blas === undefined ? original : { ...original, kernelFunc: kernel(blas, original.kernelFunc) })
}

function kernel(blas: Blas, fallback: tf.KernelFunc): tf.KernelFunc {
  return call => {
    const { a, b } = call.inputs as { a: tf.TensorInfo; b: tf.TensorInfo }
    const { transposeA, transposeB } = call.attrs as unknown as Attributes
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

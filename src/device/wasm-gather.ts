/**
 * Replaces the wasm backend's gather along the first axis, which copies element by element, by a copy of whole rows.
 */
import * as tf from '#tfjs'
import type { WasmBackend } from './wasm-memory.js'

const KERNEL = 'GatherV2'
let isReplaced = false

/** Registers the kernel. Idempotent. */
export function registerRowGather(): void {
  if (isReplaced) return
  isReplaced = true
  const original = tf.getKernel(KERNEL, 'wasm')
  tf.unregisterKernel(KERNEL, 'wasm')
  tf.registerKernel({ ...original, kernelFunc: rowGather(original.kernelFunc) })
}

function rowGather(fallback: tf.KernelFunc): tf.KernelFunc {
  return call => {
    const { x, indices } = call.inputs as { x: tf.TensorInfo; indices: tf.TensorInfo }
    const { axis, batchDims } = call.attrs as unknown as { readonly axis: number; readonly batchDims: number }
    const hasWordElements = x.dtype === 'float32' || x.dtype === 'int32'
    if (axis !== 0 || batchDims !== 0 || !hasWordElements || indices.dtype !== 'int32') return fallback(call)
    const backend = call.backend as WasmBackend
    const [rows, ...row] = x.shape
    const result = backend.makeOutput([...indices.shape, ...row], x.dtype)
    const { buffer } = backend.wasm.HEAPU8
    const words = new Int32Array(buffer)
    // Tensors are aligned to 4 bytes.
    const [source, ids, target] = [x, indices, result].map(
      ({ dataId }) => backend.dataIdMap.get(dataId).memoryOffset / 4
    )
    const size = tf.util.sizeFromShape(row)
    const count = tf.util.sizeFromShape(indices.shape)
    for (let i = 0; i < count; i++) {
      const index = words[ids + i]
      tf.util.assert(index >= 0 && index < rows, () => `gather: row ${index} is out of range (${rows} rows)`)
      const start = source + index * size
      words.copyWithin(target + i * size, start, start + size)
    }
    return result
  }
}

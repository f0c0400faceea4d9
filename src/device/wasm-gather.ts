/** Rows of a table by their numbers on the wasm backend, which looks for each element on its own; here rows are copied whole. */
import * as tf from '@tensorflow/tfjs-core'
import type { WasmBackend } from './wasm-memory.js'

const KERNEL = 'GatherV2'
let isReplaced = false

/** From now on, for gathers along the first axis. Harmless to repeat. */
export function registerRowGather(): void {
  if (isReplaced) return
  isReplaced = true
  const original = tf.getKernel(KERNEL, 'wasm')
  tf.unregisterKernel(KERNEL, 'wasm')
  tf.registerKernel({ ...original, kernelFunc: rowGather(original.kernelFunc) })
}

function rowGather(fallback: tf.KernelFunc): tf.KernelFunc {
  return given => {
    const { x, indices } = given.inputs as { x: tf.TensorInfo; indices: tf.TensorInfo }
    const { axis, batchDims } = given.attrs as unknown as { readonly axis: number; readonly batchDims: number }
    const isOfWords = x.dtype === 'float32' || x.dtype === 'int32'
    if (axis !== 0 || batchDims !== 0 || !isOfWords || indices.dtype !== 'int32') return fallback(given)
    const backend = given.backend as WasmBackend
    const [rows, ...row] = x.shape
    const found = backend.makeOutput([...indices.shape, ...row], x.dtype)
    const { buffer } = backend.wasm.HEAPU8
    const words = new Int32Array(buffer)
    // Tensors begin at whole words.
    const [from, by, to] = [x, indices, found].map(({ dataId }) => backend.dataIdMap.get(dataId).memoryOffset / 4)
    const size = tf.util.sizeFromShape(row)
    const count = tf.util.sizeFromShape(indices.shape)
    for (let i = 0; i < count; i++) {
      const index = words[by + i]
      tf.util.assert(index >= 0 && index < rows, () => `gather: there is no row ${index} of ${rows}`)
      const start = from + index * size
      words.copyWithin(to + i * size, start, start + size)
    }
    return found
  }
}

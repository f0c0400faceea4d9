/**
 * TensorFlow.js on WebAssembly: one thread with SIMD, and matrix products by the machine's BLAS library if there is
 * one. The heap never shrinks, so its size is the peak.
 */
import * as tf from '#tfjs'
import { loadBlas } from './blas.js'
import { registerAffineKernels, registerBlasProducts, registerHeadKernels } from './blas-kernels.js'
import type { Backend, DeviceOptions } from './types.js'
import { registerRowGather, registerWasmKernels } from './wasm-kernels.js'
import { guardHeap, type Heap, type WasmBackend } from './wasm-memory.js'
import '#tfjs-wasm'

export async function openWasm({ blas: library, blasThreads }: DeviceOptions): Promise<Backend> {
  if (!(await tf.setBackend('wasm'))) throw new Error('the backend does not start')
  const heap = (tf.backend() as unknown as { readonly wasm: Heap }).wasm
  guardHeap(heap)
  registerRowGather()
  const { fillRows, sumRows } = registerWasmKernels(tf.backend() as unknown as WasmBackend)
  const blas = await loadBlas({ library, threads: blasThreads })
  registerBlasProducts(blas)
  registerHeadKernels(blas)
  registerAffineKernels(blas, { fillRows, sumRows })
  return {
    detail: blas === undefined ? 'without a BLAS' : `with ${blas.description}`,
    hasFastProducts: blas !== undefined,
    sharesHostMemory: false,
    peakBytes: () => heap.HEAPU8.length
  }
}

/** TensorFlow.js on WebAssembly: one thread with SIMD, no download. Its heap never shrinks, so its size is a high-water mark. */
import '@tensorflow/tfjs-backend-wasm'
import * as tf from '@tensorflow/tfjs-core'

export const backend = {
  name: 'wasm',
  bytes: () => (tf.backend() as unknown as { wasm: { HEAPU8: Uint8Array } }).wasm.HEAPU8.length
}

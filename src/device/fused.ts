/** Custom kernels by name, which only some devices have. */
import * as tf from '#tfjs'
import type { AffineKernel } from './blas-affine.js'
import type { HeadKernel } from './blas-heads.js'
import type { WasmKernel } from './wasm-kernels.js'

/**
 * Runs a custom kernel.
 * @returns undefined if the device does not have the kernel
 */
export function runFused<Result extends tf.Tensor | tf.Tensor[] = tf.Tensor>(
  kernel: AffineKernel | HeadKernel | WasmKernel,
  inputs: tf.NamedTensorMap,
  attributes: object = {}
): Result | undefined {
  if (tf.getKernel(kernel, tf.getBackend()) === undefined) return undefined
  return tf.engine().runKernel(kernel, inputs, attributes as tf.NamedAttrMap) as Result
}

/**
 * Kernels of our own that some devices have beside TensorFlow.js's operations: layers ask for them first, and do without where
 * there are none. Those that take a tensor over may write in its memory.
 */
import * as tf from '@tensorflow/tfjs-core'
import type { AffineKernel, HeadKernel, WasmKernel } from '../device/index.js'
import { consume } from './scope.js'

/** @returns undefined where the device has no such kernel */
export function runFused<Made extends tf.Tensor | tf.Tensor[] = tf.Tensor>(
  kernel: AffineKernel | HeadKernel | WasmKernel,
  inputs: tf.NamedTensorMap,
  attributes: object = {}
): Made | undefined {
  if (tf.getKernel(kernel, tf.getBackend()) === undefined) return undefined
  return tf.engine().runKernel(kernel, inputs, attributes as tf.NamedAttrMap) as Made
}

/**
 * x + y, where y has the shape of x or of its last axes.
 * @param x disposed of
 */
export function addTo(x: tf.Tensor, y: tf.Tensor): tf.Tensor {
  return consume([x], () => runFused('AddInPlace', { x, y }) ?? tf.add(x, y))
}

/**
 * x·y, number by number, where y has the shape of x.
 * @param x disposed of
 */
export function multiplyInto(x: tf.Tensor, y: tf.Tensor): tf.Tensor {
  return consume([x], () => runFused('MultiplyInPlace', { x, y }) ?? tf.mul(x, y))
}

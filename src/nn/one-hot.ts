/** One-hot vectors of floats, made of integers first: wasm's kernel writes the bits of integers whatever type it is asked for. */
import * as tf from '@tensorflow/tfjs-core'

/** @param indices int32 @param depth at least 2 @returns [...indices, depth] of 0 and 1 */
export function oneHot(indices: tf.Tensor, depth: number): tf.Tensor {
  return tf.tidy(() => tf.cast(tf.oneHot(indices as tf.Tensor1D, depth), 'float32'))
}

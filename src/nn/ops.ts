/**
 * Tensor operations that layers share: early disposal, operations in place, and one-hot vectors.
 */
import { runFused } from '#device'
import * as tf from '#tfjs'
import type { Pullback, SavedForward, WantedGradient } from './types.js'

/** Runs a backward pass and disposes of every intermediate tensor except the gradients. */
export function tidyPullback(compute: () => Pullback): Pullback {
  let result: Pullback | undefined
  tf.tidy(() => {
    result = compute()
    return result.dx === undefined ? [...result.dWeights] : [result.dx, ...result.dWeights]
  })
  return result as Pullback
}

/** Runs a forward pass and disposes of every intermediate tensor except the output and the saved activations. */
export function tidySavedForward(compute: () => SavedForward): SavedForward {
  let result: SavedForward | undefined
  tf.tidy(() => {
    result = compute()
    return [result.y, ...result.saved]
  })
  return result as SavedForward
}

/** The gradients that are wanted of those of all weights. Disposes of the others. */
export function onlyWanted(gradients: readonly tf.Tensor[], wanted: readonly WantedGradient[] = []): tf.Tensor[] {
  tf.dispose(gradients.filter((_, i) => wanted[i] === 'none'))
  return gradients.filter((_, i) => wanted[i] !== 'none')
}

/** Runs `compute` and disposes of its inputs, which are not needed afterwards. */
export function consume(inputs: readonly tf.Tensor[], compute: () => tf.Tensor): tf.Tensor {
  const result = tf.tidy(compute)
  tf.dispose([...inputs])
  return result
}

/**
 * x + y, where y has the shape of x or of its last axes. May write into the memory of x.
 * @param x is disposed of
 */
export function addTo(x: tf.Tensor, y: tf.Tensor): tf.Tensor {
  return consume([x], () => runFused('AddInPlace', { x, y }) ?? tf.add(x, y))
}

/**
 * Elementwise x·y, where y has the shape of x. May write into the memory of x.
 * @param x is disposed of
 */
export function multiplyInto(x: tf.Tensor, y: tf.Tensor): tf.Tensor {
  return consume([x], () => runFused('MultiplyInPlace', { x, y }) ?? tf.mul(x, y))
}

/**
 * One-hot vectors of float32. They are made as integers and cast, because the wasm kernel writes integer bits for any
 * type.
 * @param indices int32
 * @param depth at least 2
 * @returns [...indices, depth]
 */
export function oneHot(indices: tf.Tensor, depth: number): tf.Tensor {
  return tf.tidy(() => tf.cast(tf.oneHot(indices as tf.Tensor1D, depth), 'float32'))
}

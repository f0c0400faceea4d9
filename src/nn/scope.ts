/** Disposal of what a layer makes and does not return, as early as it is known to be of no more use. */
import * as tf from '@tensorflow/tfjs-core'
import type { Pullback, SavedForward } from './types.js'

/** Runs a backward pass and disposes of all that it made but the gradients. */
export function tidyPullback(compute: () => Pullback): Pullback {
  let result: Pullback | undefined
  tf.tidy(() => {
    result = compute()
    return result.dx === undefined ? [...result.dWeights] : [result.dx, ...result.dWeights]
  })
  return result as Pullback
}

/** Runs a forward pass and disposes of all that it made but the output and what is kept. */
export function tidySavedForward(compute: () => SavedForward): SavedForward {
  let result: SavedForward | undefined
  tf.tidy(() => {
    result = compute()
    return [result.y, ...result.saved]
  })
  return result as SavedForward
}

/** Computes from tensors that nothing needs afterwards, and disposes of them at once. */
export function consume(inputs: readonly tf.Tensor[], compute: () => tf.Tensor): tf.Tensor {
  const result = tf.tidy(compute)
  tf.dispose([...inputs])
  return result
}

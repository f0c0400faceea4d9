/** Disposal of what a layer makes and does not return. */
import * as tf from '@tensorflow/tfjs-core'
import type { Pullback } from './types.js'

/** Runs a backward pass and disposes of all that it made but the gradients. */
export function pullback(compute: () => Pullback): Pullback {
  let result: Pullback | undefined
  tf.tidy(() => {
    result = compute()
    return result.dx === undefined ? [...result.dWeights] : [result.dx, ...result.dWeights]
  })
  return result as Pullback
}

/** Squared error of one predicted number: ½(x − target)², as for linear models. */
import * as tf from '@tensorflow/tfjs-core'
import { consume } from '../scope.js'
import type { Head } from '../types.js'

export function squaredHead(): Head {
  const differenceOf = (x: tf.Tensor, targets: tf.Tensor) => tf.tidy(() => tf.sub(x, tf.reshape(targets, [-1, 1])))
  const lossOf = (difference: tf.Tensor) => tf.tidy(() => tf.mul(tf.sum(tf.square(difference)), 0.5))
  return {
    kind: 'squared',
    classifies: false,
    input: [1],
    score: (x, targets) => {
      const difference = differenceOf(x, targets)
      return { loss: consume([difference], () => lossOf(difference)), hits: undefined }
    },
    lossAndGradient: (x, targets) => {
      const dx = differenceOf(x, targets)
      return { loss: lossOf(dx), hits: undefined, dx }
    },
    predict: x => tf.reshape(x, [-1])
  }
}

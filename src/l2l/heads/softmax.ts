/** Softmax cross-entropy over classes: the loss of a sample is the negative logarithm of its class's probability. */
import * as tf from '@tensorflow/tfjs-core'
import type { Head } from '../types.js'

export function softmaxHead(classes: number): Head {
  const judged = (logits: tf.Tensor, targets: tf.Tensor) => {
    const wanted = tf.oneHot(targets as tf.Tensor1D, classes, 1, 0, 'float32')
    const logProbabilities = tf.logSoftmax(logits)
    const loss = tf.neg(tf.sum(tf.mul(wanted, logProbabilities)))
    const hits = tf.sum(tf.cast(tf.equal(tf.argMax(logits, -1), tf.cast(targets, 'int32')), 'float32'))
    return { wanted, logProbabilities, loss, hits }
  }
  return {
    kind: 'softmax',
    classifies: true,
    input: [classes],
    score: (x, targets) =>
      tf.tidy(() => {
        const { loss, hits } = judged(x, targets)
        return { loss, hits }
      }),
    lossAndGradient: (x, targets) =>
      tf.tidy(() => {
        const { wanted, logProbabilities, loss, hits } = judged(x, targets)
        return { loss, hits, dx: tf.sub(tf.exp(logProbabilities), wanted) }
      }),
    predict: x => tf.softmax(x)
  }
}

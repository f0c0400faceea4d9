/**
 * Softmax cross-entropy: the loss of a sample is the negative logarithm of its class's probability; for a sequence with a
 * class for each position, the mean over positions.
 */
import * as tf from '@tensorflow/tfjs-core'
import { asRows } from '../matmul.js'
import { oneHot } from '../one-hot.js'
import { consume } from '../scope.js'
import { sizeOf } from '../shape.js'
import type { Head, HeadScore } from '../types.js'

/** @param input [classes] or [length, classes] */
export function softmaxHead(input: readonly number[]): Head {
  const classes = input[input.length - 1]
  const positions = sizeOf(input) / classes

  const scoreOf = (logProbabilities: tf.Tensor, wanted: tf.Tensor, x: tf.Tensor, targets: tf.Tensor): HeadScore => ({
    loss: tf.tidy(() => tf.div(tf.neg(tf.sum(tf.mul(wanted, logProbabilities))), positions)),
    hits: tf.tidy(() => {
      const found = tf.equal(tf.argMax(asRows(x), -1), tf.reshape(targets, [-1]))
      return tf.div(tf.sum(tf.cast(found, 'float32')), positions)
    })
  })
  const oneHotTargets = (targets: tf.Tensor): tf.Tensor => tf.tidy(() => oneHot(tf.reshape(targets, [-1]), classes))

  return {
    kind: 'softmax',
    classifies: true,
    input,
    score: (x, targets) => {
      let score: HeadScore | undefined
      tf.tidy(() => {
        score = scoreOf(tf.logSoftmax(asRows(x)), oneHotTargets(targets), x, targets)
        return [score.loss, score.hits as tf.Tensor]
      })
      return score as HeadScore
    },
    lossAndGradient: (x, targets) => {
      let result: (HeadScore & { dx: tf.Tensor }) | undefined
      tf.tidy(() => {
        const logProbabilities = tf.logSoftmax(asRows(x))
        const wanted = oneHotTargets(targets)
        const score = scoreOf(logProbabilities, wanted, x, targets)
        const p = consume([logProbabilities], () => tf.exp(logProbabilities))
        const difference = consume([p, wanted], () => tf.sub(p, wanted))
        const dx = consume([difference], () => tf.reshape(tf.div(difference, positions), x.shape))
        result = { ...score, dx }
        return [dx, score.loss, score.hits as tf.Tensor]
      })
      return result as HeadScore & { dx: tf.Tensor }
    },
    predict: x => tf.softmax(x)
  }
}

/** The heads of a network: softmax cross-entropy for classes and tokens, squared error for numbers. */
import * as tf from '#tfjs'
import type { TargetScale } from '../learning/index.js'
import { asRows, consume, oneHot } from './ops.js'
import { type Head, type HeadScore, type RowWeights, sizeOf } from './types.js'

/**
 * Softmax cross-entropy: the negative log probability of a sample's class; for a sequence, the mean over positions.
 * @param input [classes] or [length, classes]
 */
export function softmaxHead(input: readonly number[]): Head {
  const classes = input[input.length - 1]
  const positions = sizeOf(input) / classes

  const scoreOf = (
    logProbabilities: tf.Tensor,
    labels: tf.Tensor,
    x: tf.Tensor,
    targets: tf.Tensor,
    weights: RowWeights | undefined
  ): HeadScore => ({
    loss: tf.tidy(() => {
      const products = timesRows(tf.mul(labels, logProbabilities), weights?.score)
      return tf.div(tf.neg(tf.sum(products)), positions)
    }),
    hits: tf.tidy(() => {
      const correct = tf.equal(tf.argMax(asRows(x), -1), tf.reshape(targets, [-1]))
      return tf.div(tf.sum(timesRows(tf.cast(correct, 'float32'), weights?.score)), positions)
    })
  })
  const oneHotTargets = (targets: tf.Tensor): tf.Tensor => tf.tidy(() => oneHot(tf.reshape(targets, [-1]), classes))

  return {
    kind: 'softmax',
    classifies: true,
    input,
    score: (x, targets, weights) => {
      let score: HeadScore | undefined
      tf.tidy(() => {
        score = scoreOf(tf.logSoftmax(asRows(x)), oneHotTargets(targets), x, targets, weights)
        return [score.loss, score.hits as tf.Tensor]
      })
      return score as HeadScore
    },
    lossAndGradient: (x, targets, weights) => {
      let result: (HeadScore & { dx: tf.Tensor }) | undefined
      tf.tidy(() => {
        const logProbabilities = tf.logSoftmax(asRows(x))
        const labels = oneHotTargets(targets)
        const score = scoreOf(logProbabilities, labels, x, targets, weights)
        const p = consume([logProbabilities], () => tf.exp(logProbabilities))
        const difference = consume([p, labels], () => tf.sub(p, labels))
        const mean = consume([difference], () => tf.reshape(tf.div(difference, positions), x.shape))
        const dx = weights === undefined ? mean : consume([mean], () => timesRows(mean, weights.gradient))
        result = { ...score, dx }
        return [dx, score.loss, score.hits as tf.Tensor]
      })
      return result as HeadScore & { dx: tf.Tensor }
    },
    predict: x => tf.softmax(x)
  }
}

/**
 * Squared error of one predicted number: ½(prediction − target)², as for linear models. With a scale, the network learns the
 * standardised target (target − mean)/deviation. Losses and predictions are in units of the target; the gradient is that of
 * the standardised loss.
 */
export function squaredHead(scale?: TargetScale): Head {
  const { mean, deviation } = scale ?? { mean: 0, deviation: 1 }
  const standardised = (targets: tf.Tensor) =>
    scale === undefined ? targets : tf.div(tf.sub(targets, mean), deviation)
  const differenceOf = (x: tf.Tensor, targets: tf.Tensor) =>
    tf.tidy(() => tf.sub(x, tf.reshape(standardised(targets), [-1, 1])))
  const lossOf = (difference: tf.Tensor, weights: RowWeights | undefined) =>
    tf.tidy(() => tf.mul(tf.sum(timesRows(tf.square(difference), weights?.score)), 0.5 * deviation * deviation))
  return {
    kind: 'squared',
    classifies: false,
    input: [1],
    score: (x, targets, weights) => {
      const difference = differenceOf(x, targets)
      return { loss: consume([difference], () => lossOf(difference, weights)), hits: undefined }
    },
    lossAndGradient: (x, targets, weights) => {
      const difference = differenceOf(x, targets)
      const loss = lossOf(difference, weights)
      if (weights === undefined) return { loss, hits: undefined, dx: difference }
      return { loss, hits: undefined, dx: consume([difference], () => timesRows(difference, weights.gradient)) }
    },
    predict: x => {
      if (scale === undefined) return tf.reshape(x, [-1])
      return tf.tidy(() => tf.add(tf.mul(tf.reshape(x, [-1]), deviation), mean))
    }
  }
}

/** Multiplies the elements of each row, of which x has the same number, by the row's weight. */
function timesRows(x: tf.Tensor, weights: Float32Array | undefined): tf.Tensor {
  if (weights === undefined) return x
  return tf.tidy(() =>
    tf.reshape(tf.mul(tf.reshape(x, [weights.length, -1]), tf.tensor(weights, [weights.length, 1])), x.shape)
  )
}

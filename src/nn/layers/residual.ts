/** A layer with a shortcut around it: y = x + f(x) (He et al., 2016). */
import * as tf from '@tensorflow/tfjs-core'
import { ModelError } from '../errors.js'
import { addTo } from '../fused-kernels.js'
import { tidyPullback, tidySavedForward } from '../scope.js'
import { formatShape, sameShape } from '../shape.js'
import type { Layer, Pass } from '../types.js'

/**
 * @param skipRate share of the training steps that leave the layer out (stochastic depth: Huang et al., ECCV 2016); in the others
 *   f counts 1/(1 − skipRate) times, so that at prediction it counts as often as on average
 * @throws ModelError if the layer's output has another shape than its input
 */
export function residual(inner: Layer, skipRate = 0): Layer {
  if (!sameShape(inner.input, inner.output)) {
    const shapes = `${formatShape(inner.input)} becomes ${formatShape(inner.output)}`
    throw new ModelError(`layer ${inner.name} cannot have a shortcut: its ${shapes}`)
  }
  const scaled = (y: tf.Tensor, { training }: Pass) => (training && skipRate > 0 ? tf.mul(y, 1 / (1 - skipRate)) : y)
  const plus = (x: tf.Tensor, y: tf.Tensor, pass: Pass) => {
    const through = scaled(y, pass)
    if (through !== y) y.dispose()
    return addTo(through, x)
  }
  return {
    ...inner,
    skipRate,
    forward: (x, weights, pass) => tf.tidy(() => plus(x, inner.forward(x, weights, pass), pass)),
    forwardSaving: (x, weights, pass) =>
      tidySavedForward(() => {
        const { y, saved: kept } = inner.forwardSaving(x, weights, pass)
        return { y: plus(x, y, pass), saved: kept }
      }),
    vjp: (x, weights, dy, pass, kept) =>
      tidyPullback(() => {
        const { dx, dWeights } = inner.vjp(x, weights, scaled(dy, pass), pass, kept)
        return { dx: addTo(dx as tf.Tensor, dy), dWeights }
      })
  }
}

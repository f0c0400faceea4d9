/** A layer with a shortcut around it: y = x + f(x) (He et al., 2016). */
import * as tf from '@tensorflow/tfjs-core'
import { ModelError } from '../errors.js'
import { keeping, pullback, spend } from '../scope.js'
import { sameShape, shownShape } from '../shape.js'
import type { Layer } from '../types.js'

/** @throws ModelError if the layer's output has another shape than its input */
export function residual(inner: Layer): Layer {
  if (!sameShape(inner.input, inner.output)) {
    const shapes = `${shownShape(inner.input)} becomes ${shownShape(inner.output)}`
    throw new ModelError(`layer ${inner.name} cannot have a shortcut: its ${shapes}`)
  }
  return {
    ...inner,
    forward: (x, weights, pass) =>
      tf.tidy(() => {
        const y = inner.forward(x, weights, pass)
        return spend([y], () => tf.add(x, y))
      }),
    forwardKeeping: (x, weights, pass) =>
      keeping(() => {
        const { y, kept } = inner.forwardKeeping(x, weights, pass)
        return { y: spend([y], () => tf.add(x, y)), kept }
      }),
    vjp: (x, weights, dy, pass, kept) =>
      pullback(() => {
        const { dx, dWeights } = inner.vjp(x, weights, dy, pass, kept)
        const through = dx as tf.Tensor
        return { dx: spend([through], () => tf.add(dy, through)), dWeights }
      })
  }
}

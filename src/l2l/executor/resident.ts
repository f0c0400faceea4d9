/**
 * Plain training, to compare with and for models that fit: all weights, gradient sums and one microbatch's insides are on
 * the device at once. With one microbatch it is the `baseline`, with several `baseline-ag`.
 */
import * as tf from '@tensorflow/tfjs-core'
import {
  GradientSum,
  load,
  lossAndGradient,
  microbatches,
  type StepContext,
  skipOmittedLayers,
  trainingPass
} from './step.js'

export function runBaseline(context: StepContext): void {
  const { model, order, batch, meter } = context
  const layers = order.map(l => model.layers[l])
  const weights = order.map(l => load(context, l))
  const sums = layers.map(() => new GradientSum())
  for (const [microbatch, rows] of microbatches(context).entries()) {
    const inputs = [batch.inputs(...rows)]
    const insides: (readonly tf.Tensor[])[] = []
    for (const [at, layer] of layers.entries()) {
      meter.currentOperation = `layer ${layer.name}`
      const pass = trainingPass(context, order[at], microbatch)
      const { y, saved: kept } = layer.forwardSaving(inputs[at], weights[at], pass)
      inputs.push(y)
      insides.push(kept)
    }
    const y = inputs.pop() as tf.Tensor
    let dy: tf.Tensor | undefined = lossAndGradient(model.head, context, rows, y)
    y.dispose()
    for (let at = layers.length - 1; at >= 0; at--) {
      meter.currentOperation = `layer ${layers[at].name}`
      const pass = trainingPass(context, order[at], microbatch)
      const { dx, dWeights } = layers[at].vjp(inputs[at], weights[at], dy as tf.Tensor, pass, insides[at])
      tf.dispose([inputs[at], dy as tf.Tensor, ...insides[at]])
      dy = dx
      sums[at].add(dWeights)
    }
    dy?.dispose()
  }
  tf.dispose(weights)
  for (let at = layers.length - 1; at >= 0; at--) sums[at].flush(context, order[at])
  skipOmittedLayers(context)
}

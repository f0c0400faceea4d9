/**
 * Conventional training, for comparison and for models that fit: all weights, gradient sums and one microbatch's
 * activations are on the device at once. With one microbatch it is schedule `baseline`, with several
 * `baseline-ag`.
 */
import * as tf from '#tfjs'
import { firstTrained } from '../../nn/layer-order.js'
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
  const first = firstTrained(model, order)
  const sums = layers.map(() => new GradientSum())
  for (const [microbatch, rows] of microbatches(context).entries()) {
    const inputs = [batch.inputs(...rows)]
    const saved: (readonly tf.Tensor[])[] = []
    for (const [position, layer] of layers.entries()) {
      meter.currentOperation = `layer ${layer.name}`
      const pass = trainingPass(context, order[position], microbatch)
      if (position < first) {
        inputs.push(layer.forward(inputs[position], weights[position], pass))
        inputs[position].dispose()
        saved.push([])
        continue
      }
      const { y, saved: activations } = layer.forwardSaving(inputs[position], weights[position], pass)
      inputs.push(y)
      saved.push(activations)
    }
    const y = inputs.pop() as tf.Tensor
    let dy: tf.Tensor | undefined = lossAndGradient(model.head, context, rows, y)
    y.dispose()
    for (let position = layers.length - 1; position >= first; position--) {
      meter.currentOperation = `layer ${layers[position].name}`
      const pass = trainingPass(context, order[position], microbatch)
      const { dx, dWeights } = layers[position].vjp(
        inputs[position],
        weights[position],
        dy as tf.Tensor,
        pass,
        saved[position]
      )
      tf.dispose([inputs[position], dy as tf.Tensor, ...saved[position]])
      dy = dx
      sums[position].add(dWeights)
    }
    dy?.dispose()
  }
  tf.dispose(weights)
  for (let position = layers.length - 1; position >= 0; position--) sums[position].flush(context, order[position])
  skipOmittedLayers(context)
}

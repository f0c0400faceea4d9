/**
 * Plain training, to compare with and for models that fit: all weights, gradient sums and one microbatch's insides are on
 * the device at once. With one microbatch it is the `baseline`, with several `baseline-ag`.
 */
import * as tf from '@tensorflow/tfjs-core'
import { GradientSum, judge, load, microbatches, type Run, trainingPass } from './run.js'

export function runResident(run: Run): void {
  const { model, host, batch, step, meter } = run
  const { layers } = model
  const weights = layers.map((_, layer) => load(run, layer))
  const sums = layers.map(() => new GradientSum())
  for (const [microbatch, rows] of microbatches(run).entries()) {
    const inputs = [batch.inputs(...rows)]
    const insides: (readonly tf.Tensor[])[] = []
    for (const [l, layer] of layers.entries()) {
      meter.busyWith = `layer ${layer.name}`
      const { y, kept } = layer.forwardKeeping(inputs[l], weights[l], trainingPass(step, l, microbatch))
      inputs.push(y)
      insides.push(kept)
    }
    const y = inputs.pop() as tf.Tensor
    let dy: tf.Tensor | undefined = judge(model.head, run, rows, y)
    y.dispose()
    for (let l = layers.length - 1; l >= 0; l--) {
      meter.busyWith = `layer ${layers[l].name}`
      const pass = trainingPass(step, l, microbatch)
      const { dx, dWeights } = layers[l].vjp(inputs[l], weights[l], dy as tf.Tensor, pass, insides[l])
      tf.dispose([inputs[l], dy as tf.Tensor, ...insides[l]])
      dy = dx
      sums[l].add(dWeights)
    }
    dy?.dispose()
  }
  tf.dispose(weights)
  for (let l = layers.length - 1; l >= 0; l--) sums[l].leave(host, l)
}

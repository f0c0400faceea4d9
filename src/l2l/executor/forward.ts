/** The forward pass alone, layer by layer, for scores and predictions: no more than two layers' outputs are stashed. */
import * as tf from '@tensorflow/tfjs-core'
import { load, microbatches, type StepContext } from './step.js'

const INFERENCE = { training: false, seed: 0 }

/** @param use is given each microbatch's outputs, which it must not dispose of, and its rows */
export function runForward(
  run: Pick<StepContext, 'model' | 'store' | 'batch' | 'order' | 'microbatch' | 'meter' | 'outputs' | 'precision'>,
  use: (y: tf.Tensor, from: number, to: number) => void
): void {
  const { model, batch, order, outputs } = run
  const last = order.length - 1
  for (const [at, l] of order.entries()) {
    const weights = load(run, l)
    for (const [microbatch, [from, to]] of microbatches(run).entries()) {
      const x = at === 0 ? batch.inputs(from, to) : outputs.borrow(at, microbatch)
      const y = model.layers[l].forward(x, weights, INFERENCE)
      if (at === 0) x.dispose()
      else {
        outputs.release(x)
        outputs.drop(at, microbatch)
      }
      if (at < last) outputs.put(at + 1, microbatch, y)
      else {
        use(y, from, to)
        y.dispose()
      }
    }
    tf.dispose(weights)
  }
}

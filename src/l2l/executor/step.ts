/** What all schedules share: one step's arguments, the seeds of its passes, sums of gradients, and the judgement of outputs. */
import * as tf from '@tensorflow/tfjs-core'
import { DivergenceError } from '../../learner/index.js'
import { addTo } from '../../nn/fused-kernels.js'
import { omittedLayers } from '../../nn/layer-order.js'
import { forkSeed } from '../../nn/random.js'
import type { Head, HeadScore, Model, Pass } from '../../nn/types.js'
import { roundToBf16 } from '../bfloat16.js'
import { upload } from '../block-tensors.js'
import type { DeviceMeter } from './meter.js'
import type { Batch, ParameterStore, Precision, Stash } from './types.js'

export interface StepContext {
  readonly model: Model
  readonly store: ParameterStore
  readonly batch: Batch
  /** Numbers of the layers that this step executes, in that order. */
  readonly order: readonly number[]
  readonly precision: Precision
  /** Rows of a microbatch; the last one may have fewer. */
  readonly microbatch: number
  /** Number of the step, from which dropout is drawn. */
  readonly step: number
  /** Number of the batch's first microbatch: more than 0 where the batch is a part of what several devices share. */
  readonly firstMicrobatch: number
  readonly meter: DeviceMeter
  readonly score: { loss: number; hits: number }
  /** Layers whose insides are kept on the device from the forward to the backward pass. */
  readonly saves: ReadonlySet<number>
  /** Layers whose weights stay on the device from the forward to the backward pass. */
  readonly resident: ReadonlySet<number>
  /** For layer outputs, by the place in the order of the layer that reads them. */
  readonly outputs: Stash
  /** For gradients at layer outputs, by the place of the layer that made the output. */
  readonly gradients: Stash
}

/** Microbatches as [from, to) rows. */
export function microbatches({
  batch,
  microbatch
}: Pick<StepContext, 'batch' | 'microbatch'>): [from: number, to: number][] {
  const parts: [number, number][] = []
  for (let from = 0; from < batch.size; from += microbatch) parts.push([from, Math.min(batch.size, from + microbatch)])
  return parts
}

export function trainingPass({ step, firstMicrobatch }: StepContext, layer: number, microbatch: number): Pass {
  return { training: true, seed: forkSeed(forkSeed(step, layer), firstMicrobatch + microbatch) }
}

/** Tells the store of the layers that the step leaves out, the last one first, once there are gradients of others. */
export function skipOmittedLayers({ model, store, order }: StepContext): void {
  for (const l of omittedLayers(model, order).reverse()) store.skip(l)
}

/** Uploads a layer's weights, and says so to the meter. */
export function load(
  { model, store, meter, precision }: Pick<StepContext, 'model' | 'store' | 'meter' | 'precision'>,
  layer: number
): tf.Tensor[] {
  const { name, weights } = model.layers[layer]
  meter.currentOperation = `layer ${name}`
  if (weights.length === 0) return []
  const block = store.weights(layer)
  return upload(model.layers[layer], precision === 'bf16' ? roundToBf16(block) : block)
}

/** Gradients of one layer's weights, summed on the device in the order of the microbatches. */
export class GradientSum {
  #sums: tf.Tensor[] | undefined

  /** Takes the tensors over. */
  add(gradients: readonly tf.Tensor[]): void {
    if (this.#sums === undefined) this.#sums = [...gradients]
    else {
      this.#sums = this.#sums.map((sum, i) => addTo(sum, gradients[i]))
      tf.dispose([...gradients])
    }
  }

  /** Hands the sum to the store and leaves the device. */
  flush({ store, precision }: StepContext, layer: number): void {
    const sums = this.#sums ?? []
    this.#sums = undefined
    if (sums.length === 0) return
    const values = sums.map(sum => sum.dataSync() as Float32Array)
    store.pushGradients(layer, precision === 'bf16' ? values.map(roundToBf16) : values)
    tf.dispose(sums)
  }
}

/** Adds the scalars to the score and disposes of them. @throws DivergenceError for a loss that is no number */
export function addScore(score: StepContext['score'], { loss, hits }: HeadScore): void {
  const value = loss.dataSync()[0]
  score.loss += value
  score.hits += hits?.dataSync()[0] ?? 0
  tf.dispose(hits ? [loss, hits] : [loss])
  if (!Number.isFinite(value)) {
    throw new DivergenceError('the loss left all bounds: scale the features, or use a smaller step')
  }
}

/** Loss of a microbatch's outputs, and its gradient there. */
export function lossAndGradient(
  head: Head,
  { batch, score, meter }: StepContext,
  [from, to]: [number, number],
  y: tf.Tensor
): tf.Tensor {
  meter.currentOperation = `the ${head.kind} head`
  const targets = batch.targets(from, to)
  const { dx, ...sums } = head.lossAndGradient(y, targets)
  targets.dispose()
  addScore(score, sums)
  return dx
}

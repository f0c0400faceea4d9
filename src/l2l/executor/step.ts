/** Shared by all schedules: the context of a step, loading of weights, random seeds, gradient sums and the loss. */
import * as tf from '#tfjs'
import { openedDevice } from '../../device/index.js'
import { DivergenceError } from '../../learner/index.js'
import { omittedLayers } from '../../nn/layer-order.js'
import { addTo } from '../../nn/ops.js'
import { forkSeed } from '../../nn/random.js'
import { sizeOf } from '../../nn/shape.js'
import type { Head, HeadScore, Layer, Model, Pass } from '../../nn/types.js'
import { roundToBf16 } from '../bfloat16.js'
import type { DeviceMeter } from './meter.js'
import type { Batch, ParameterStore, Precision, Stash } from './types.js'

export interface StepContext {
  readonly model: Model
  readonly store: ParameterStore
  readonly batch: Batch
  /** Indices of the layers that this step executes, in order. */
  readonly order: readonly number[]
  readonly precision: Precision
  /** Rows of a microbatch; the last one may have fewer. */
  readonly microbatch: number
  /** Seed of the step. */
  readonly step: number
  /** Index of the batch's first microbatch within the minibatch; above 0 if several devices share the minibatch. */
  readonly firstMicrobatch: number
  readonly meter: DeviceMeter
  readonly score: { loss: number; hits: number }
  /** Layers whose activations stay on the device from the forward to the backward pass. */
  readonly saves: ReadonlySet<number>
  /** Layers whose weights stay on the device from the forward to the backward pass. */
  readonly resident: ReadonlySet<number>
  /** Layer outputs, by the position in the order of the layer that consumes them. */
  readonly outputs: Stash
  /** Gradients with respect to layer outputs, by the position of the layer that produced the output. */
  readonly gradients: Stash
}

/** Microbatches as [from, to) rows. */
export function microbatches({
  batch,
  microbatch
}: Pick<StepContext, 'batch' | 'microbatch'>): [from: number, to: number][] {
  const ranges: [number, number][] = []
  for (let from = 0; from < batch.size; from += microbatch) ranges.push([from, Math.min(batch.size, from + microbatch)])
  return ranges
}

export function trainingPass({ step, firstMicrobatch }: StepContext, layer: number, microbatch: number): Pass {
  return { training: true, seed: forkSeed(forkSeed(step, layer), firstMicrobatch + microbatch) }
}

/**
 * Reports the layers that the step omits to the store, the last one first. Called after the first gradients are pushed.
 */
export function skipOmittedLayers({ model, store, order }: StepContext): void {
  for (const l of omittedLayers(model, order).reverse()) store.skip(l)
}

/** Loads a layer's weights to the device. Names the layer in the meter. */
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

/** Copies a layer's weights to the device. The caller disposes of them. */
export function upload(layer: Layer, block: Float32Array): tf.Tensor[] {
  let offset = 0
  // A tensor that shares host memory must not see later writes by the host.
  const { sharesHostMemory } = openedDevice()
  return layer.weights.map(({ shape }) => {
    const end = offset + sizeOf(shape)
    const values = sharesHostMemory ? block.slice(offset, end) : block.subarray(offset, end)
    offset = end
    return tf.tensor(values, shape as number[], 'float32')
  })
}

/** Gradients of one layer's weights, summed on the device in the order of the microbatches. */
export class GradientSum {
  #sums: tf.Tensor[] | undefined

  /** Adds gradients and takes ownership of the tensors. */
  add(gradients: readonly tf.Tensor[]): void {
    if (this.#sums === undefined) this.#sums = [...gradients]
    else {
      this.#sums = this.#sums.map((sum, i) => addTo(sum, gradients[i]))
      tf.dispose([...gradients])
    }
  }

  /** Pushes the sum to the store and frees its device memory. */
  flush({ store, precision }: StepContext, layer: number): void {
    const sums = this.#sums ?? []
    this.#sums = undefined
    if (sums.length === 0) return
    const values = sums.map(sum => sum.dataSync() as Float32Array)
    store.pushGradients(layer, precision === 'bf16' ? values.map(roundToBf16) : values)
    tf.dispose(sums)
  }
}

/**
 * Adds the scalars to the score and disposes of them.
 * @throws DivergenceError if the loss is not finite
 */
export function addScore(score: StepContext['score'], { loss, hits }: HeadScore): void {
  const value = loss.dataSync()[0]
  score.loss += value
  score.hits += hits?.dataSync()[0] ?? 0
  tf.dispose(hits ? [loss, hits] : [loss])
  if (!Number.isFinite(value)) {
    throw new DivergenceError('the loss is not finite: scale the features, or use a smaller step')
  }
}

/** Adds the loss of a microbatch to the score. @returns the gradient with respect to the outputs */
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

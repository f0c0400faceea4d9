/** What all schedules share: one step's arguments, the seeds of its passes, sums of gradients, and the judgement of outputs. */
import * as tf from '@tensorflow/tfjs-core'
import { DivergenceError } from '../../learner/index.js'
import { upload } from '../parameters.js'
import { forkSeed } from '../random.js'
import type { Head, HeadScore, Model, Pass } from '../types.js'
import type { DeviceMeter } from './meter.js'
import type { Stash } from './stash.js'
import type { Batch, Host } from './types.js'

export interface Run {
  readonly model: Model
  readonly host: Host
  readonly batch: Batch
  /** Rows of a microbatch; the last one may have fewer. */
  readonly microbatch: number
  /** Number of the step, from which dropout is drawn. */
  readonly step: number
  readonly meter: DeviceMeter
  readonly score: { loss: number; hits: number }
  /** Layers whose insides are kept on the device from the forward to the backward pass. */
  readonly keeps: ReadonlySet<number>
  /** For layer outputs, by the number of the layer that reads them. */
  readonly outputs: Stash
  /** For gradients at layer outputs, by the number of the layer that made the output. */
  readonly gradients: Stash
}

/** Microbatches as [from, to) rows. */
export function microbatches({ batch, microbatch }: Pick<Run, 'batch' | 'microbatch'>): [from: number, to: number][] {
  const parts: [number, number][] = []
  for (let from = 0; from < batch.size; from += microbatch) parts.push([from, Math.min(batch.size, from + microbatch)])
  return parts
}

export function trainingPass(step: number, layer: number, microbatch: number): Pass {
  return { training: true, seed: forkSeed(forkSeed(step, layer), microbatch) }
}

/** Uploads a layer's weights, and says so to the meter. */
export function load({ model, host, meter }: Pick<Run, 'model' | 'host' | 'meter'>, layer: number): tf.Tensor[] {
  const { name, weights } = model.layers[layer]
  meter.busyWith = `layer ${name}`
  return weights.length === 0 ? [] : upload(model.layers[layer], host.weights(layer))
}

/** Gradients of one layer's weights, summed on the device in the order of the microbatches. */
export class GradientSum {
  #sums: tf.Tensor[] | undefined

  /** Takes the tensors over. */
  add(gradients: readonly tf.Tensor[]): void {
    if (this.#sums === undefined) this.#sums = [...gradients]
    else {
      this.#sums = this.#sums.map((sum, i) => {
        const next = tf.add(sum, gradients[i])
        sum.dispose()
        gradients[i].dispose()
        return next
      })
    }
  }

  /** Hands the sum to the host and leaves the device. */
  leave(host: Host, layer: number): void {
    const sums = this.#sums ?? []
    this.#sums = undefined
    if (sums.length === 0) return
    host.take(
      layer,
      sums.map(sum => sum.dataSync() as Float32Array)
    )
    tf.dispose(sums)
  }
}

/** Adds the scalars to the score and disposes of them. @throws DivergenceError for a loss that is no number */
export function addScore(score: Run['score'], { loss, hits }: HeadScore): void {
  const value = loss.dataSync()[0]
  score.loss += value
  score.hits += hits?.dataSync()[0] ?? 0
  tf.dispose(hits ? [loss, hits] : [loss])
  if (!Number.isFinite(value)) {
    throw new DivergenceError('the loss left all bounds: scale the features, or use a smaller step')
  }
}

/** Loss of a microbatch's outputs, and its gradient there. */
export function judge(head: Head, { batch, score, meter }: Run, [from, to]: [number, number], y: tf.Tensor): tf.Tensor {
  meter.busyWith = `the ${head.kind} head`
  const targets = batch.targets(from, to)
  const { dx, ...sums } = head.lossAndGradient(y, targets)
  targets.dispose()
  addScore(score, sums)
  return dx
}

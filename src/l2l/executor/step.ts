/**
 * What all schedules share: the context of a step, loading of weights, random seeds, gradient sums, the loss, and the meter that
 * measures and limits the bytes on the device.
 */
import { DeviceError, openedDevice, watchBuffers } from '#device'
import * as tf from '#tfjs'
import { formatExcess } from '../../base/errors.js'
import { DivergenceError } from '../../learning/index.js'
import { omittedLayers } from '../../nn/layer-order.js'
import { addAdapter, addTo } from '../../nn/ops.js'
import { forkSeed } from '../../nn/random.js'
import {
  type Head,
  type HeadScore,
  type Layer,
  type Model,
  ModelError,
  type Pass,
  sizeOf,
  totalSize,
  type WeightSpec
} from '../../nn/types.js'
import type { SavedActivations } from './stash.js'
import { addToBlock, type Batch, type FrozenWeights, type LayerPlan, type ParameterStore, type Stash } from './types.js'

export interface StepContext {
  readonly model: Model
  readonly store: ParameterStore
  readonly batch: Batch
  /** Indices of the layers that this step executes, in order. */
  readonly order: readonly number[]
  readonly frozen?: FrozenWeights
  /** Rows of a microbatch; the last one may have fewer. */
  readonly microbatch: number
  /** Seed of the step. */
  readonly step: number
  /** Index of the batch's first microbatch within the minibatch; above 0 if several devices share the minibatch. */
  readonly firstMicrobatch: number
  readonly meter: DeviceMeter
  readonly score: { loss: number; hits: number }
  /** By the index of the layer; undefined as by default. */
  readonly plans: readonly (LayerPlan | undefined)[]
  /** Layer outputs, by the position in the order of the layer that consumes them. */
  readonly outputs: Stash
  /** Activations that are not recomputed. */
  readonly saved: SavedActivations
  /** Gradients with respect to layer outputs, by the position of the layer that produced the output. */
  readonly gradients: Stash
  /** Gradients of shared weights on the host, by layer and index of the weight, until the layer's own are complete. */
  readonly shared: Map<string, Float32Array>
}

type Rows = [from: number, to: number]

/** The index of a microbatch, and its rows. */
export type Microbatch = [microbatch: number, rows: Rows]

/** Microbatches as [from, to) rows. */
export function microbatches({ batch, microbatch }: Pick<StepContext, 'batch' | 'microbatch'>): Rows[] {
  const ranges: Rows[] = []
  for (let from = 0; from < batch.size; from += microbatch) ranges.push([from, Math.min(batch.size, from + microbatch)])
  return ranges
}

export function trainingPass(
  { batch, microbatch: rows, step, firstMicrobatch }: StepContext,
  layer: number,
  microbatch: number
): Pass {
  const from = microbatch * rows
  const lengths = batch.lengths?.(from, Math.min(batch.size, from + rows))
  return { training: true, seed: forkSeed(forkSeed(step, layer), firstMicrobatch + microbatch), lengths }
}

/**
 * Reports the layers that the step omits to the store, the last one first. Called after the first gradients are pushed.
 */
export function skipOmittedLayers({ model, store, order }: StepContext): void {
  for (const l of omittedLayers(model, order).reverse()) store.skip(l)
}

/** Loads a layer's weights to the device: its own, frozen ones with their adapters, and shared ones. Names the layer in the meter. */
export function load(
  { model, store, meter, frozen }: Pick<StepContext, 'model' | 'store' | 'meter' | 'frozen'>,
  layer: number
): tf.Tensor[] {
  const { name, weights, shares = [] } = model.layers[layer]
  meter.currentOperation = `layer ${name}`
  // WebGPU uploads a tensor when it is used first.
  const copies = store.reusesMemory === true && openedDevice().name === 'webgpu'
  const weightsOf = (l: number) => (copies ? store.weights(l).slice() : store.weights(l))
  const own = weights.length === 0 ? undefined : weightsOf(layer)
  const fixed = model.layers[layer].frozen && frozenBlock(model, frozen, layer)
  // Uploaded first: the store may reuse their memory for the shared ones.
  const tensors = upload(model.layers[layer], own, fixed)
  const others = shares.map(({ layer: source, weight, shape, isFrozen }) => {
    const block = isFrozen ? frozenBlock(model, frozen, source) : weightsOf(source)
    const before = totalSize((model.layers[source].frozen ?? model.layers[source].weights).slice(0, weight))
    return uploadPart(block.subarray(before, before + sizeOf(shape)), shape)
  })
  return [...tensors, ...others]
}

/**
 * Copies a layer's own and its frozen weights to the device. The caller disposes of them.
 * @param own of a layer with weights
 * @param fixed of a layer with frozen weights
 */
export function upload(
  { weights, frozen = [], adapters = [] }: Layer,
  own?: Float32Array,
  fixed?: Float32Array
): tf.Tensor[] {
  const trained = own === undefined ? [] : uploadAll(weights, own)
  const base = fixed === undefined ? [] : uploadAll(frozen, fixed)
  for (const [i, { weight, scale }] of adapters.entries()) {
    base[weight] = addAdapter(base[weight], { a: trained[2 * i], b: trained[2 * i + 1], scale })
  }
  return [...trained, ...base]
}

function frozenBlock({ layers }: Model, frozen: FrozenWeights | undefined, layer: number): Float32Array {
  const block = frozen?.[layer]
  if (block === undefined) throw new ModelError(`layer ${layers[layer].name} is frozen, and its weights are not loaded`)
  return block
}

function uploadAll(weights: readonly WeightSpec[], block: Float32Array): tf.Tensor[] {
  let offset = 0
  return weights.map(({ shape }) => {
    const start = offset
    offset += sizeOf(shape)
    return uploadPart(block.subarray(start, offset), shape)
  })
}

function uploadPart(values: Float32Array, shape: readonly number[]): tf.Tensor {
  // A tensor that shares host memory must not see later writes by the host.
  return tf.tensor(openedDevice().sharesHostMemory ? values.slice() : values, shape as number[], 'float32')
}

/** Gradients of one layer's weights, summed on the device in the order of the microbatches. */
export class GradientSum {
  #sums: tf.Tensor[] = []
  #parked: { readonly values: Float32Array; readonly shape: number[] }[] = []

  /** Adds gradients and takes ownership of the tensors. Those that are undefined follow in another call. */
  add(gradients: readonly (tf.Tensor | undefined)[]): void {
    for (const [i, gradient] of gradients.entries()) {
      if (gradient === undefined) continue
      const sum = this.#sums[i]
      this.#sums[i] = sum === undefined ? gradient : addTo(sum, gradient)
      if (sum !== undefined) gradient.dispose()
    }
  }

  /** Moves the sums to the host. */
  park(): void {
    this.#parked = this.#sums.map(sum => ({ values: sum.dataSync() as Float32Array, shape: sum.shape }))
    tf.dispose(this.#sums)
    this.#sums = []
  }

  /** Moves parked sums back to the device. */
  resume(): void {
    this.#sums = this.#parked.map(({ values, shape }) => tf.tensor(values, shape, 'float32'))
    this.#parked = []
  }

  /** Passes the sums on, flat and on the host, and frees their device memory. */
  flush(use: (gradients: readonly Float32Array[]) => void): void {
    const sums = this.#sums
    this.#sums = []
    const values = sums.map(sum => sum.dataSync() as Float32Array)
    use(sums.length > 0 ? values : this.#parked.map(parked => parked.values))
    tf.dispose(sums)
  }
}

/** Pushes the gradients of a layer's own weights to the store, and keeps those of shared ones until the layer that has them follows. */
export function pushLayer(
  { model, store, shared }: StepContext,
  layer: number,
  gradients: readonly Float32Array[]
): void {
  const { weights, shares: all = [] } = model.layers[layer]
  if (gradients.length === 0) return
  const shares = all.filter(({ isFrozen }) => !isFrozen)
  const own = gradients.slice(0, weights.length)
  for (const [i, { layer: source, weight }] of shares.entries()) {
    // A copy, because the device's memory is freed before the source layer's gradient is pushed.
    shared.set(`${source}/${weight}`, gradients[weights.length + i].slice())
  }
  for (const [weight, gradient] of own.entries()) {
    const other = shared.get(`${layer}/${weight}`)
    if (other === undefined) continue
    shared.delete(`${layer}/${weight}`)
    addToBlock(other, gradient)
    own[weight] = other
  }
  if (own.length > 0) store.pushGradients(layer, own)
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
  [from, to]: Rows,
  y: tf.Tensor
): tf.Tensor {
  meter.currentOperation = `the ${head.kind} head`
  const targets = batch.targets(from, to)
  const { dx, ...sums } = head.lossAndGradient(y, targets, batch.weights?.(from, to))
  targets.dispose()
  addScore(score, sums)
  return dx
}

/**
 * Measures and limits the bytes on the device: every buffer from allocation to disposal, shared buffers counted once.
 * The engine's own count has no peak and no limit. Temporary memory of running kernels is not counted.
 */
export class DeviceMeter {
  bytes = 0
  peakBytes = 0
  /** Limit of the bytes on the device beyond those that were there when it was set. */
  #limit = Number.POSITIVE_INFINITY
  #before = 0
  /** What the device executes, for error messages. */
  currentOperation = 'the minibatch'
  /** Receives the bytes after each allocation. @default they are not recorded */
  trace: number[] | undefined

  /** Resets the peak to the current size. */
  resetPeak(): void {
    this.peakBytes = this.bytes
  }

  /** Limits what is allocated from now on. Other models of the process may hold memory, too. */
  limitGrowth(bytes = Number.POSITIVE_INFINITY): void {
    this.#limit = bytes
    this.#before = this.bytes
  }

  /** @param bytes of a buffer that was allocated; negative when one was freed */
  changed(bytes: number): void {
    this.bytes += bytes
    if (bytes < 0) return
    this.trace?.push(this.bytes)
    if (this.bytes > this.peakBytes) this.peakBytes = this.bytes
    const growth = this.bytes - this.#before
    if (growth > this.#limit) throw new OverBudgetError(this.currentOperation, growth, this.#limit)
  }
}

/** A layer exceeds the device's memory limit. */
export class OverBudgetError extends DeviceError {
  constructor(
    readonly what: string,
    readonly bytes: number,
    readonly limit: number,
    advice = 'use a smaller --microbatch, --stash host, or --schedule l2l'
  ) {
    const [allowed, needed] = formatExcess(limit, bytes)
    super(`${what} needs at least ${needed} on the device, --device-memory allows ${allowed}: ${advice}`)
  }
}

let meter: DeviceMeter | undefined

/** The meter of this thread's engine, which is a singleton. */
export function deviceMeter(): DeviceMeter {
  if (meter !== undefined) return meter
  const created = new DeviceMeter()
  watchBuffers(bytes => created.changed(bytes))
  meter = created
  return meter
}

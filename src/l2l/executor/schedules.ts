/**
 * The schedules of a step. Layer-to-layer execution (Pudipeddi et al., algorithms 3 and 4): all microbatches pass through one
 * layer before the next is loaded. Only layer outputs are stashed; activations are recomputed in the backward pass. The last
 * layer's forward pass, the loss and its backward pass are one, so its outputs are never stashed and its activations never
 * recomputed. With `prefetch` a second buffer holds the next layer.
 *
 * In this file `position` is the position of a layer in the step's order.
 */
import * as tf from '#tfjs'
import { firstTrained } from '../../nn/layer-order.js'
import type { Layer } from '../../nn/types.js'
import { type LayerPass, passesOf } from './passes.js'
import {
  GradientSum,
  load,
  lossAndGradient,
  type Microbatch,
  microbatches,
  pushLayer,
  type StepContext,
  skipOmittedLayers,
  trainingPass
} from './step.js'

/**
 * The forward pass without training, for scores and predictions: the outputs of at most two layers are stashed.
 * @param use called with the outputs of each microbatch and its rows; it must not dispose of the outputs
 */
export function runForward(
  context: Pick<StepContext, 'model' | 'store' | 'batch' | 'order' | 'microbatch' | 'meter' | 'outputs' | 'frozen'>,
  use: (y: tf.Tensor, from: number, to: number) => void
): void {
  const { model, order, outputs } = context
  const last = order.length - 1
  for (const [position, l] of order.entries()) {
    const weights = load(context, l)
    for (const [microbatch, [from, to]] of microbatches(context).entries()) {
      const x = inputOf(context, position, microbatch, [from, to])
      const y = model.layers[l].forward(x, weights, {
        training: false,
        seed: 0,
        lengths: context.batch.lengths?.(from, to)
      })
      releaseInput(context, position, x)
      if (position > 0) outputs.drop(position, microbatch)
      if (position < last) outputs.put(position + 1, microbatch, y)
      else {
        use(y, from, to)
        y.dispose()
      }
    }
    tf.dispose(weights)
  }
}

/** One training step. The backward pass ends at the first layer that is trained; outputs of the layers below are not stashed. */
export function runLayerwise(context: StepContext, prefetch: boolean): void {
  const { model, order } = context
  const last = order.length - 1
  const first = firstTrained(model, order)
  const loader = new LayerLoader(context, prefetch)
  const all = [...microbatches(context).entries()]
  const passes = passesOf(
    order.map(l => context.plans[l]),
    first
  )
  for (const [i, pass] of passes.entries()) {
    const { kind, position } = pass
    const next = passes.at(i + 1)
    // What is loaded ahead is the layer above in a forward pass, and the one below in a backward pass.
    const isTurn = kind === 'backward' && next?.kind === 'recompute'
    const weights = loader.load(order[position], isTurn || next === undefined ? undefined : order[next.position])
    if (kind !== 'backward') {
      forward(context, pass, weights, all)
      loader.release(order[position], weights, position >= first)
      continue
    }
    const sum = new GradientSum()
    backward(context, position, first, weights, all, sum)
    tf.dispose(weights)
    sum.flush(gradients => pushLayer(context, order[position], gradients))
    if (position === last) skipOmittedLayers(context)
  }
}

/** Loads layers in the order of execution. */
class LayerLoader {
  #prefetched: { readonly layer: number; readonly weights: tf.Tensor[] } | undefined
  readonly #resident = new Map<number, tf.Tensor[]>()

  constructor(
    private readonly context: StepContext,
    private readonly prefetch: boolean
  ) {}

  /** The layer's weights on the device. Starts loading the next layer. */
  load(layer: number, next: number | undefined): tf.Tensor[] {
    const prefetched = this.#prefetched?.layer === layer ? this.#prefetched.weights : undefined
    const weights = this.#resident.get(layer) ?? prefetched ?? load(this.context, layer)
    this.#prefetched = undefined
    if (this.prefetch && next !== undefined && !this.#resident.has(next)) {
      this.#prefetched = { layer: next, weights: load(this.context, next) }
    }
    return weights
  }

  /** After the forward pass: disposes of the weights, unless they stay resident for the backward pass. */
  release(layer: number, weights: tf.Tensor[], isNeeded: boolean): void {
    if (isNeeded && this.context.plans[layer]?.isResident) this.#resident.set(layer, weights)
    else tf.dispose(weights)
  }
}

/** A pass of some microbatches through a layer, whose input is in the stash. */
export function forward(
  context: StepContext,
  { position, dropsInput, keepsOutput }: Omit<LayerPass, 'kind'>,
  weights: tf.Tensor[],
  among: readonly Microbatch[]
): void {
  const { order, plans, saved, outputs } = context
  const layer = layerAt(context, position)
  const l = order[position]
  const { activations = 'recomputed', outputs: place } = plans[l] ?? {}
  const isSaved = keepsOutput && activations !== 'recomputed'
  for (const [microbatch, rows] of among) {
    const pass = trainingPass(context, l, microbatch)
    const x = inputOf(context, position, microbatch, rows)
    if (isSaved) {
      const result = layer.forwardSaving(x, weights, pass)
      saved.put(position, microbatch, result.saved, activations === 'host')
      outputs.put(position + 1, microbatch, result.y, place === 'device')
    } else outputs.put(position + 1, microbatch, layer.forward(x, weights, pass), place === 'device')
    releaseInput(context, position, x)
    if (dropsInput) outputs.drop(position, microbatch)
  }
}

/** Forward pass, loss and backward pass of the last layer. */
function lossAndBackward(
  context: StepContext,
  position: number,
  first: number,
  weights: tf.Tensor[],
  among: readonly Microbatch[],
  sum: GradientSum
): void {
  const { model, order } = context
  const layer = layerAt(context, position)
  for (const [microbatch, rows] of among) {
    const pass = trainingPass(context, order[position], microbatch)
    const x = inputOf(context, position, microbatch, rows)
    const { y, saved } = layer.forwardSaving(x, weights, pass)
    const dy = lossAndGradient(model.head, context, rows, y)
    y.dispose()
    finishBackward(context, position, first, microbatch, x, dy, sum, layer.vjp(x, weights, dy, pass, saved))
    tf.dispose([...saved])
  }
}

/**
 * The backward pass of some microbatches through a layer; through the last one with its forward pass and the loss.
 * @param first position at which the backward pass ends
 */
export function backward(
  context: StepContext,
  position: number,
  first: number,
  weights: tf.Tensor[],
  among: readonly Microbatch[],
  sum: GradientSum
): void {
  const { order, saved: allSaved, gradients } = context
  if (position === order.length - 1) {
    lossAndBackward(context, position, first, weights, among, sum)
    return
  }
  const layer = layerAt(context, position)
  for (const [microbatch, rows] of among) {
    const saved = allSaved.take(position, microbatch)
    const x = inputOf(context, position, microbatch, rows)
    const dy = gradients.borrow(position, microbatch)
    const pass = trainingPass(context, order[position], microbatch)
    finishBackward(context, position, first, microbatch, x, dy, sum, layer.vjp(x, weights, dy, pass, saved))
    gradients.drop(position, microbatch)
    if (saved) tf.dispose([...saved])
  }
}

/** Passes a layer's gradients on and disposes of its inputs. */
function finishBackward(
  context: StepContext,
  position: number,
  first: number,
  microbatch: number,
  x: tf.Tensor,
  dy: tf.Tensor,
  sum: GradientSum,
  { dx, dWeights }: ReturnType<Layer['vjp']>
): void {
  const { outputs, gradients } = context
  releaseInput(context, position, x)
  if (position > 0) outputs.drop(position, microbatch)
  if (position === context.order.length - 1) dy.dispose()
  else gradients.release(dy)
  const { plans, order } = context
  const below = plans[order[position - 1]]
  if (position > first && dx) gradients.put(position - 1, microbatch, dx, below?.outputs === 'device')
  else dx?.dispose()
  sum.add(dWeights)
}

/** The layer at a position. Names it in the meter, for error messages. */
function layerAt({ model, order, meter }: StepContext, position: number): Layer {
  const layer = model.layers[order[position]]
  meter.currentOperation = `layer ${layer.name}`
  return layer
}

/** A microbatch's input to a layer. The first layer's input is read from the batch instead of being stashed. */
function inputOf(
  { batch, outputs }: Pick<StepContext, 'batch' | 'outputs'>,
  position: number,
  microbatch: number,
  rows: [from: number, to: number]
): tf.Tensor {
  return position === 0 ? batch.inputs(...rows) : outputs.borrow(position, microbatch)
}

function releaseInput({ outputs }: Pick<StepContext, 'outputs'>, position: number, x: tf.Tensor): void {
  if (position === 0) x.dispose()
  else outputs.release(x)
}

/**
 * Layer-to-layer execution (Pudipeddi et al., algorithms 3 and 4): all microbatches go through one layer before the next is
 * loaded; only layer outputs are stashed, insides are computed again in the backward pass. The last layer's forward, the
 * loss and its backward are one, so its outputs are never stashed and its insides never computed twice. With `ahead` a
 * second buffer holds the layer that comes next.
 */
import * as tf from '@tensorflow/tfjs-core'
import type { Layer } from '../../nn/types.js'
import {
  GradientSum,
  load,
  lossAndGradient,
  microbatches,
  type StepContext,
  skipOmittedLayers,
  trainingPass
} from './step.js'

export function runLayerwise(context: StepContext, ahead: boolean): void {
  const { order } = context
  const last = order.length - 1
  const loader = new Loader(context, ahead)
  const insides = new Map<string, readonly tf.Tensor[]>()
  for (let at = 0; at < last; at++) {
    const weights = loader.take(order[at], order[at + 1])
    forward(context, at, weights, insides)
    loader.release(order[at], weights)
  }
  for (let at = last; at >= 0; at--) {
    const weights = loader.take(order[at], order[at - 1])
    const sum = new GradientSum()
    if (at === last) lossAndBackward(context, at, weights, sum)
    else backward(context, at, weights, sum, insides)
    tf.dispose(weights)
    sum.flush(context, order[at])
    if (at === last) skipOmittedLayers(context)
  }
}

/** Loads layers in the order of execution. */
class Loader {
  #loaded: { readonly layer: number; readonly weights: tf.Tensor[] } | undefined
  readonly #resident = new Map<number, tf.Tensor[]>()

  constructor(
    private readonly context: StepContext,
    private readonly ahead: boolean
  ) {}

  /** The layer's weights, the next one's being on their way. */
  take(layer: number, next: number | undefined): tf.Tensor[] {
    const weights =
      this.#resident.get(layer) ?? (this.#loaded?.layer === layer ? this.#loaded.weights : load(this.context, layer))
    this.#loaded = undefined
    if (this.ahead && next !== undefined && !this.#resident.has(next)) {
      this.#loaded = { layer: next, weights: load(this.context, next) }
    }
    return weights
  }

  /** After the forward pass: they go, or stay for the backward pass, after which whoever took them disposes of them. */
  release(layer: number, weights: tf.Tensor[]): void {
    if (this.context.resident.has(layer)) this.#resident.set(layer, weights)
    else tf.dispose(weights)
  }
}

// Below, `at` is a layer's place in the step's order.

function forward(
  context: StepContext,
  at: number,
  weights: tf.Tensor[],
  insides: Map<string, readonly tf.Tensor[]>
): void {
  const { order, saves: keeps, outputs } = context
  const layer = layerAt(context, at)
  for (const [microbatch, rows] of microbatches(context).entries()) {
    const pass = trainingPass(context, order[at], microbatch)
    const x = input(context, at, microbatch, rows)
    if (keeps.has(order[at])) {
      const { y, saved: kept } = layer.forwardSaving(x, weights, pass)
      insides.set(`${at}/${microbatch}`, kept)
      outputs.put(at + 1, microbatch, y)
    } else outputs.put(at + 1, microbatch, layer.forward(x, weights, pass))
    releaseInput(context, at, x)
  }
}

/** Forward, loss and backward of the last layer. */
function lossAndBackward(context: StepContext, at: number, weights: tf.Tensor[], sum: GradientSum): void {
  const { model, order } = context
  const layer = layerAt(context, at)
  for (const [microbatch, rows] of microbatches(context).entries()) {
    const pass = trainingPass(context, order[at], microbatch)
    const x = input(context, at, microbatch, rows)
    const { y, saved: kept } = layer.forwardSaving(x, weights, pass)
    const dy = lossAndGradient(model.head, context, rows, y)
    y.dispose()
    layerAt(context, at)
    finishBackward(context, at, microbatch, x, dy, sum, layer.vjp(x, weights, dy, pass, kept))
    tf.dispose([...kept])
  }
}

function backward(
  context: StepContext,
  at: number,
  weights: tf.Tensor[],
  sum: GradientSum,
  insides: Map<string, readonly tf.Tensor[]>
): void {
  const { order, gradients } = context
  const layer = layerAt(context, at)
  for (const [microbatch, rows] of microbatches(context).entries()) {
    const kept = insides.get(`${at}/${microbatch}`)
    insides.delete(`${at}/${microbatch}`)
    const x = input(context, at, microbatch, rows)
    const dy = gradients.borrow(at, microbatch)
    const pass = trainingPass(context, order[at], microbatch)
    finishBackward(context, at, microbatch, x, dy, sum, layer.vjp(x, weights, dy, pass, kept))
    gradients.drop(at, microbatch)
    if (kept) tf.dispose([...kept])
  }
}

/** Passes on what came back through a layer, and lets go of what it was made from. */
function finishBackward(
  context: StepContext,
  at: number,
  microbatch: number,
  x: tf.Tensor,
  dy: tf.Tensor,
  sum: GradientSum,
  { dx, dWeights }: ReturnType<Layer['vjp']>
): void {
  const { outputs, gradients } = context
  releaseInput(context, at, x)
  if (at > 0) outputs.drop(at, microbatch)
  if (at === context.order.length - 1) dy.dispose()
  else gradients.release(dy)
  if (at > 0 && dx) gradients.put(at - 1, microbatch, dx)
  else dx?.dispose()
  sum.add(dWeights)
}

function layerAt({ model, order, meter }: StepContext, at: number): Layer {
  const layer = model.layers[order[at]]
  meter.currentOperation = `layer ${layer.name}`
  return layer
}

/** A microbatch's input to a layer: the first one's comes from the store, which has it anyway. */
function input({ batch, outputs }: StepContext, at: number, microbatch: number, rows: [number, number]): tf.Tensor {
  return at === 0 ? batch.inputs(...rows) : outputs.borrow(at, microbatch)
}

function releaseInput({ outputs }: StepContext, at: number, x: tf.Tensor): void {
  if (at === 0) x.dispose()
  else outputs.release(x)
}

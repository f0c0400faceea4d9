/**
 * Layer-to-layer execution (Pudipeddi et al., algorithms 3 and 4): all microbatches go through one layer before the next is
 * loaded; only layer outputs are stashed, insides are computed again in the backward pass. The last layer's forward, the
 * loss and its backward are one, so its outputs are never stashed and its insides never computed twice. With `ahead` a
 * second buffer holds the layer that comes next.
 */
import * as tf from '@tensorflow/tfjs-core'
import type { Layer } from '../types.js'
import { GradientSum, judge, load, microbatches, type Run, tellLeftOut, trainingPass } from './run.js'

export function runLayerwise(run: Run, ahead: boolean): void {
  const { order } = run
  const last = order.length - 1
  const loader = new Loader(run, ahead)
  const insides = new Map<string, readonly tf.Tensor[]>()
  for (let at = 0; at < last; at++) {
    const weights = loader.take(order[at], order[at + 1])
    forward(run, at, weights, insides)
    loader.giveBack(order[at], weights)
  }
  for (let at = last; at >= 0; at--) {
    const weights = loader.take(order[at], order[at - 1])
    const sum = new GradientSum()
    if (at === last) turn(run, at, weights, sum)
    else backward(run, at, weights, sum, insides)
    tf.dispose(weights)
    sum.leave(run, order[at])
    if (at === last) tellLeftOut(run)
  }
}

/** Loads layers in the order of execution. */
class Loader {
  #loaded: { readonly layer: number; readonly weights: tf.Tensor[] } | undefined
  readonly #resident = new Map<number, tf.Tensor[]>()

  constructor(
    private readonly run: Run,
    private readonly ahead: boolean
  ) {}

  /** The layer's weights, the next one's being on their way. */
  take(layer: number, next: number | undefined): tf.Tensor[] {
    const weights =
      this.#resident.get(layer) ?? (this.#loaded?.layer === layer ? this.#loaded.weights : load(this.run, layer))
    this.#loaded = undefined
    if (this.ahead && next !== undefined && !this.#resident.has(next)) {
      this.#loaded = { layer: next, weights: load(this.run, next) }
    }
    return weights
  }

  /** After the forward pass: they go, or stay for the backward pass, after which whoever took them disposes of them. */
  giveBack(layer: number, weights: tf.Tensor[]): void {
    if (this.run.resident.has(layer)) this.#resident.set(layer, weights)
    else tf.dispose(weights)
  }
}

// Below, `at` is a layer's place in the step's order.

function forward(run: Run, at: number, weights: tf.Tensor[], insides: Map<string, readonly tf.Tensor[]>): void {
  const { order, keeps, outputs } = run
  const layer = busyWith(run, at)
  for (const [microbatch, rows] of microbatches(run).entries()) {
    const pass = trainingPass(run, order[at], microbatch)
    const x = input(run, at, microbatch, rows)
    if (keeps.has(order[at])) {
      const { y, kept } = layer.forwardKeeping(x, weights, pass)
      insides.set(`${at}/${microbatch}`, kept)
      outputs.put(at + 1, microbatch, y)
    } else outputs.put(at + 1, microbatch, layer.forward(x, weights, pass))
    returned(run, at, x)
  }
}

/** Forward, loss and backward of the last layer. */
function turn(run: Run, at: number, weights: tf.Tensor[], sum: GradientSum): void {
  const { model, order } = run
  const layer = busyWith(run, at)
  for (const [microbatch, rows] of microbatches(run).entries()) {
    const pass = trainingPass(run, order[at], microbatch)
    const x = input(run, at, microbatch, rows)
    const { y, kept } = layer.forwardKeeping(x, weights, pass)
    const dy = judge(model.head, run, rows, y)
    y.dispose()
    busyWith(run, at)
    pulled(run, at, microbatch, x, dy, sum, layer.vjp(x, weights, dy, pass, kept))
    tf.dispose([...kept])
  }
}

function backward(
  run: Run,
  at: number,
  weights: tf.Tensor[],
  sum: GradientSum,
  insides: Map<string, readonly tf.Tensor[]>
): void {
  const { order, gradients } = run
  const layer = busyWith(run, at)
  for (const [microbatch, rows] of microbatches(run).entries()) {
    const kept = insides.get(`${at}/${microbatch}`)
    insides.delete(`${at}/${microbatch}`)
    const x = input(run, at, microbatch, rows)
    const dy = gradients.borrow(at, microbatch)
    const pass = trainingPass(run, order[at], microbatch)
    pulled(run, at, microbatch, x, dy, sum, layer.vjp(x, weights, dy, pass, kept))
    gradients.drop(at, microbatch)
    if (kept) tf.dispose([...kept])
  }
}

/** Passes on what came back through a layer, and lets go of what it was made from. */
function pulled(
  run: Run,
  at: number,
  microbatch: number,
  x: tf.Tensor,
  dy: tf.Tensor,
  sum: GradientSum,
  { dx, dWeights }: ReturnType<Layer['vjp']>
): void {
  const { outputs, gradients } = run
  returned(run, at, x)
  if (at > 0) outputs.drop(at, microbatch)
  if (at === run.order.length - 1) dy.dispose()
  else gradients.release(dy)
  if (at > 0 && dx) gradients.put(at - 1, microbatch, dx)
  else dx?.dispose()
  sum.add(dWeights)
}

function busyWith({ model, order, meter }: Run, at: number): Layer {
  const layer = model.layers[order[at]]
  meter.busyWith = `layer ${layer.name}`
  return layer
}

/** A microbatch's input to a layer: the first one's comes from the host, which has it anyway. */
function input({ batch, outputs }: Run, at: number, microbatch: number, rows: [number, number]): tf.Tensor {
  return at === 0 ? batch.inputs(...rows) : outputs.borrow(at, microbatch)
}

function returned({ outputs }: Run, at: number, x: tf.Tensor): void {
  if (at === 0) x.dispose()
  else outputs.release(x)
}

/**
 * Layer-to-layer execution (Pudipeddi et al., algorithms 3 and 4): all microbatches go through one layer before the next is
 * loaded; only layer outputs are stashed, insides are computed again in the backward pass. The last layer's forward, the
 * loss and its backward are one, so its outputs are never stashed and its insides never computed twice. With `ahead` a
 * second buffer holds the layer that comes next.
 */
import * as tf from '@tensorflow/tfjs-core'
import type { Layer } from '../types.js'
import { GradientSum, judge, load, microbatches, type Run, trainingPass } from './run.js'

export function runLayerwise(run: Run, ahead: boolean): void {
  const { layers } = run.model
  const last = layers.length - 1
  const loader = new Loader(run, ahead)
  const insides = new Map<string, readonly tf.Tensor[]>()
  for (let l = 0; l < last; l++) {
    const weights = loader.take(l, l + 1)
    forward(run, l, weights, insides)
    tf.dispose(weights)
  }
  for (let l = last; l >= 0; l--) {
    const weights = loader.take(l, l - 1)
    const sum = new GradientSum()
    if (l === last) turn(run, l, weights, sum)
    else backward(run, l, weights, sum, insides)
    tf.dispose(weights)
    sum.leave(run.host, l)
  }
}

/** Loads layers in the order of execution. */
class Loader {
  #loaded: { readonly layer: number; readonly weights: tf.Tensor[] } | undefined

  constructor(
    private readonly run: Run,
    private readonly ahead: boolean
  ) {}

  /** The layer's weights, the next one's being on their way. */
  take(layer: number, next: number): tf.Tensor[] {
    const weights = this.#loaded?.layer === layer ? this.#loaded.weights : load(this.run, layer)
    this.#loaded = undefined
    if (this.ahead && next >= 0) this.#loaded = { layer: next, weights: load(this.run, next) }
    return weights
  }
}

function forward(run: Run, l: number, weights: tf.Tensor[], insides: Map<string, readonly tf.Tensor[]>): void {
  const { model, step, keeps, outputs } = run
  const layer = busyWith(run, l)
  for (const [microbatch, rows] of microbatches(run).entries()) {
    const pass = trainingPass(step, l, microbatch)
    const x = input(run, l, microbatch, rows)
    if (keeps.has(l)) {
      const { y, kept } = layer.forwardKeeping(x, weights, pass)
      insides.set(`${l}/${microbatch}`, kept)
      outputs.put(l + 1, microbatch, y)
    } else outputs.put(l + 1, microbatch, model.layers[l].forward(x, weights, pass))
    returned(run, l, x)
  }
}

/** Forward, loss and backward of the last layer. */
function turn(run: Run, l: number, weights: tf.Tensor[], sum: GradientSum): void {
  const { model, step } = run
  const layer = busyWith(run, l)
  for (const [microbatch, rows] of microbatches(run).entries()) {
    const pass = trainingPass(step, l, microbatch)
    const x = input(run, l, microbatch, rows)
    const { y, kept } = layer.forwardKeeping(x, weights, pass)
    const dy = judge(model.head, run, rows, y)
    y.dispose()
    busyWith(run, l)
    pulled(run, l, microbatch, x, dy, sum, layer.vjp(x, weights, dy, pass, kept))
    tf.dispose([...kept])
  }
}

function backward(
  run: Run,
  l: number,
  weights: tf.Tensor[],
  sum: GradientSum,
  insides: Map<string, readonly tf.Tensor[]>
): void {
  const { step, gradients } = run
  const layer = busyWith(run, l)
  for (const [microbatch, rows] of microbatches(run).entries()) {
    const kept = insides.get(`${l}/${microbatch}`)
    insides.delete(`${l}/${microbatch}`)
    const x = input(run, l, microbatch, rows)
    const dy = gradients.borrow(l, microbatch)
    pulled(run, l, microbatch, x, dy, sum, layer.vjp(x, weights, dy, trainingPass(step, l, microbatch), kept))
    gradients.drop(l, microbatch)
    if (kept) tf.dispose([...kept])
  }
}

/** Passes on what came back through layer l, and lets go of what it was made from. */
function pulled(
  run: Run,
  l: number,
  microbatch: number,
  x: tf.Tensor,
  dy: tf.Tensor,
  sum: GradientSum,
  { dx, dWeights }: ReturnType<Layer['vjp']>
): void {
  const { outputs, gradients } = run
  returned(run, l, x)
  if (l > 0) outputs.drop(l, microbatch)
  if (l === run.model.layers.length - 1) dy.dispose()
  else gradients.release(dy)
  if (l > 0 && dx) gradients.put(l - 1, microbatch, dx)
  else dx?.dispose()
  sum.add(dWeights)
}

function busyWith({ model, meter }: Run, l: number): Layer {
  meter.busyWith = `layer ${model.layers[l].name}`
  return model.layers[l]
}

/** A microbatch's input to layer l: the first layer's comes from the host, which has it anyway. */
function input({ batch, outputs }: Run, l: number, microbatch: number, rows: [number, number]): tf.Tensor {
  return l === 0 ? batch.inputs(...rows) : outputs.borrow(l, microbatch)
}

function returned({ outputs }: Run, l: number, x: tf.Tensor): void {
  if (l === 0) x.dispose()
  else outputs.release(x)
}

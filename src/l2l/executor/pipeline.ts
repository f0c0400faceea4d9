/**
 * Conventional training, in which a device keeps the weights of its layers and the activations of microbatches: of the whole model on one
 * device, or of a stage of a pipeline. A stage may also execute its layers layer to layer. `position` is the position of a layer in the
 * step's order.
 */
import * as tf from '#tfjs'
import { firstTrained } from '../../nn/layer-order.js'
import { type Deferred, type Layer, sizeOf } from '../../nn/types.js'
import { type Operation, pipelineOrders } from './pipeline-orders.js'
import { backward, forward } from './schedules.js'
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
import type { Pipeline, Stash } from './types.js'

/** A device's place in a pipeline. The last stage computes the loss and pushes all gradients to the store. */
export interface StagePlace {
  readonly kind: Pipeline
  readonly stages: number
  readonly stage: number
  /** The first layer of each chunk of all stages. */
  readonly cut: readonly number[]
  /** Microbatches of an operation. */
  readonly group: number
}

export interface Stage extends StagePlace {
  /** Sends outputs, or gradients with respect to them, to the stage of another chunk. Takes ownership of the tensor. */
  send(to: Operation, tensor: tf.Tensor): void
  /** Blocks until the tensor has arrived that the operation needs. @throws AbortedError */
  receive(operation: Operation): tf.Tensor
  /**
   * The gradients of the next layer of another stage. Only the last stage has it; other stages push theirs.
   * @param lengths of the gradients
   * @throws AbortedError
   */
  collect?(stage: number, lengths: readonly number[]): readonly Float32Array[]
}

/** Another device has failed, so that this one cannot continue with the step. */
export class AbortedError extends Error {
  readonly code = 'aborted'

  constructor() {
    super('the step was aborted')
  }
}

/**
 * All weights, gradient sums and one microbatch's activations are on the device at once. With one microbatch it is schedule `baseline`,
 * with several `baseline-ag`.
 */
export function runBaseline(context: StepContext): void {
  const { model, order, batch } = context
  const first = firstTrained(model, order)
  const section = new Section(context, 0, order.length, first)
  for (const [microbatch, rows] of microbatches(context).entries()) {
    const y = section.forwardOne(microbatch, batch.inputs(...rows))
    const dy = lossAndGradient(model.head, context, rows, y)
    y.dispose()
    section.backwardOne(microbatch, dy)?.dispose()
  }
  section.unload()
  for (let position = order.length - 1; position >= first; position--) {
    section.flush(position, gradients => pushLayer(context, order[position], gradients))
  }
  skipOmittedLayers(context)
}

/**
 * Runs the operations of a stage. Then the gradients go to the store, the last layer first: the last stage pushes all of them, and
 * the others pass theirs to it.
 * @param isLoaded whether layers are loaded for each operation, so that the device holds one at a time
 */
export function runStage(context: StepContext, stage: Stage, isLoaded: boolean): void {
  const { model, order, batch, store } = context
  const { kind, stages, cut, group } = stage
  const all = [...microbatches(context).entries()]
  const first = firstTrained(model, order)
  const last = cut.length - 1
  /** Positions at which the chunks start, and the last one ends; a step may skip all layers of a chunk. */
  const starts = [...cut, Number.POSITIVE_INFINITY].map(layer => order.filter(l => l < layer).length)
  const Kind = isLoaded ? LoadedSection : Section
  const sections = cut.map((_, chunk) =>
    chunk % stages === stage.stage ? new Kind(context, starts[chunk], starts[chunk + 1], first) : undefined
  )
  const losses = new Map<number, tf.Tensor>()
  for (const operation of pipelineOrders(kind, stages, Math.ceil(all.length / group), cut.length / stages)[
    stage.stage
  ]) {
    const { chunk } = operation
    const section = sections[chunk] as Section | LoadedSection
    const among = all.slice(operation.microbatch * group, (operation.microbatch + 1) * group)
    if (operation.kind === 'forward') {
      section.forward(
        among,
        ([microbatch, rows]) => (chunk === 0 ? batch.inputs(...rows) : stage.receive({ ...operation, microbatch })),
        ([microbatch, rows], y) => {
          if (chunk < last) return stage.send({ ...operation, chunk: chunk + 1, microbatch }, y)
          losses.set(microbatch, lossAndGradient(model.head, context, rows, y))
          y.dispose()
        }
      )
    } else if (operation.kind === 'weights') section.weightGradients(among)
    else if (starts[chunk + 1] > first) {
      section.backward(
        among,
        ([microbatch]) =>
          chunk < last ? stage.receive({ ...operation, microbatch }) : (losses.get(microbatch) as tf.Tensor),
        ([microbatch], dx) => stage.send({ ...operation, chunk: chunk - 1, microbatch }, dx),
        kind === 'zb-h1'
      )
    }
  }
  for (const section of sections) section?.unload()
  for (let position = order.length - 1; position >= first; position--) {
    const chunk = starts.findLastIndex(start => start <= position)
    const layer = order[position]
    const push = (gradients: readonly Float32Array[]) =>
      stage.collect ? pushLayer(context, layer, gradients) : store.pushGradients(layer, gradients)
    const section = sections[chunk]
    if (section !== undefined) section.flush(position, push)
    else if (stage.collect) push(stage.collect(chunk % stages, gradientLengths(model.layers[layer])))
  }
  if (stage.collect) skipOmittedLayers(context)
}

/** Numbers of the gradients of a layer: of its own weights, and of those that it shares. */
function gradientLengths({ weights, shares = [] }: Layer): number[] {
  return [...weights, ...shares.filter(({ isFrozen }) => !isFrozen)].map(({ shape }) => sizeOf(shape))
}

/** What the backward pass of a microbatch needs of a layer. */
interface Stored {
  readonly x: tf.Tensor
  readonly saved: readonly tf.Tensor[]
}

/** Returns the input of a microbatch, or the gradient with respect to its output. */
type Input = (microbatch: Microbatch) => tf.Tensor
/** Takes ownership of the output of a microbatch, or the gradient with respect to its input. */
type Output = (microbatch: Microbatch, tensor: tf.Tensor) => void

/** Consecutive layers of a step on the device. */
class Section {
  readonly #weights: readonly tf.Tensor[][]
  readonly #sums: readonly GradientSum[]
  readonly #stored = new Map<number, Stored[]>()
  /** What the gradients of the weights need, for each microbatch, by position from the last one. */
  readonly #deferred = new Map<number, Deferred[][]>()

  /** @param first position at which the backward pass ends */
  constructor(
    private readonly context: StepContext,
    private readonly from: number,
    private readonly to: number,
    private readonly first: number
  ) {
    const layers = context.order.slice(from, to)
    this.#weights = layers.map(l => load(context, l))
    this.#sums = layers.map(() => new GradientSum())
  }

  forward(among: readonly Microbatch[], input: Input, output: Output): void {
    for (const each of among) output(each, this.forwardOne(each[0], input(each)))
  }

  /** @param defers whether `weightGradients` follows, which adds the gradients of the weights */
  backward(among: readonly Microbatch[], gradient: Input, output: Output, defers: boolean): void {
    for (const each of among) {
      const dx = this.backwardOne(each[0], gradient(each), defers)
      if (dx !== undefined && this.from > this.first) output(each, dx)
      else dx?.dispose()
    }
  }

  /** Takes ownership of the input. @returns the output of the last layer */
  forwardOne(microbatch: number, input: tf.Tensor): tf.Tensor {
    const stored: Stored[] = []
    let x = input
    for (let position = this.from; position < this.to; position++) {
      const { layer, weights, pass } = this.#at(position, microbatch)
      if (position < this.first) {
        const y = layer.forward(x, weights, pass)
        x.dispose()
        x = y
      } else {
        const { y, saved } = layer.forwardSaving(x, weights, pass)
        stored.push({ x, saved })
        x = y
      }
    }
    this.#stored.set(microbatch, stored)
    return x
  }

  /**
   * Adds the gradients of the weights to their sums.
   * @param dy gradient with respect to the output, of which it takes ownership
   * @param defers as for `backward`
   * @returns the gradient with respect to the input; undefined for token ids
   */
  backwardOne(microbatch: number, dy: tf.Tensor, defers = false): tf.Tensor | undefined {
    const stored = this.#stored.get(microbatch) ?? []
    this.#stored.delete(microbatch)
    const allDeferred: Deferred[][] = []
    let d: tf.Tensor | undefined = dy
    for (let position = this.to - 1; position >= Math.max(this.from, this.first); position--) {
      const { x, saved } = stored.pop() as Stored
      const { layer, weights, pass } = this.#at(position, microbatch)
      const deferred = defers ? weights.map((): Deferred => ({})) : undefined
      const { dx, dWeights } = layer.vjp(x, weights, d as tf.Tensor, { ...pass, wanted: deferred }, saved)
      tf.dispose([x, d as tf.Tensor, ...saved])
      d = dx
      // A layer may compute some gradients at once.
      const others = [...dWeights]
      const now = deferred?.map(({ compute }) => (compute === undefined ? others.shift() : undefined))
      this.#sums[position - this.from].add(now ?? dWeights)
      if (deferred !== undefined) allDeferred.push(deferred)
    }
    if (defers) this.#deferred.set(microbatch, allDeferred)
    return d
  }

  weightGradients(among: readonly Microbatch[]): void {
    for (const [microbatch] of among) {
      for (const [i, deferred] of (this.#deferred.get(microbatch) ?? []).entries()) {
        this.#sums[this.to - 1 - i - this.from].add(deferred.flatMap(({ compute }) => compute?.() ?? [undefined]))
      }
      this.#deferred.delete(microbatch)
    }
  }

  /** Disposes of the weights. */
  unload(): void {
    tf.dispose([...this.#weights.flat()])
  }

  /** Passes the gradients of the layer on and frees their device memory. */
  flush(position: number, use: (gradients: readonly Float32Array[]) => void): void {
    this.#sums[position - this.from].flush(use)
  }

  /** Names the layer in the meter, for error messages. */
  #at(position: number, microbatch: number) {
    const { model, order, meter } = this.context
    const l = order[position]
    const layer: Layer = model.layers[l]
    meter.currentOperation = `layer ${layer.name}`
    return { layer, weights: this.#weights[position - this.from], pass: trainingPass(this.context, l, microbatch) }
  }
}

/**
 * Consecutive layers of a step, each of which is on the device while some microbatches pass it: layer-to-layer execution within a stage.
 * Activations are recomputed; inputs of layers, gradients of outputs, and sums of gradients are in host memory.
 */
class LoadedSection {
  readonly #sums = new Map<number, GradientSum>()
  /** Whether the last layer's forward pass and the loss are part of its backward pass. */
  readonly #hasLoss: boolean

  /** @param first position at which the backward pass ends */
  constructor(
    private readonly context: StepContext,
    private readonly from: number,
    private readonly to: number,
    private readonly first: number
  ) {
    this.#hasLoss = from < to && to === context.order.length
  }

  forward(among: readonly Microbatch[], input: Input, output: Output): void {
    const { context, from, to, first } = this
    const { order, outputs } = context
    // The first layer of a step reads its rows itself.
    if (from > 0 || to === 0) for (const each of among) outputs.put(from, each[0], input(each))
    for (let position = from; position < (this.#hasLoss ? to - 1 : to); position++) {
      const weights = load(context, order[position])
      const dropsInput = position > 0 && position < first
      forward(context, { position, dropsInput, keepsOutput: position >= first }, weights, among)
      tf.dispose(weights)
    }
    if (!this.#hasLoss) for (const each of among) output(each, taken(outputs, to, each[0]))
  }

  /** The gradients of the weights are computed at once. */
  backward(among: readonly Microbatch[], gradient: Input, output: Output): void {
    const { context, from, to, first } = this
    const { order, gradients } = context
    if (!this.#hasLoss) for (const each of among) gradients.put(to - 1, each[0], gradient(each))
    for (let position = to - 1; position >= Math.max(from, first); position--) {
      const sum = this.#sums.get(position) ?? new GradientSum()
      this.#sums.set(position, sum)
      const weights = load(context, order[position])
      sum.resume()
      backward(context, position, first, weights, among, sum)
      tf.dispose(weights)
      sum.park()
    }
    if (from > first) for (const each of among) output(each, taken(gradients, from - 1, each[0]))
  }

  weightGradients(): void {}

  unload(): void {}

  flush(position: number, use: (gradients: readonly Float32Array[]) => void): void {
    this.#sums.get(position)?.flush(use)
  }
}

/** Removes a tensor from the stash. */
function taken(stash: Stash, position: number, microbatch: number): tf.Tensor {
  const tensor = stash.borrow(position, microbatch)
  stash.drop(position, microbatch)
  return tensor
}

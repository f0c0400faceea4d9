/**
 * The executor: runs minibatches through a model on the device, under one of the schedules, within the device's memory.
 * It also returns the outcomes of single rows, for the figures that need more than sums.
 */
import { BackendError, DeviceError } from '#device'
import type { Tensor } from '#tfjs'
import * as tf from '#tfjs'
import { OptionError, type OutcomeKind, widthOf } from '../../learning/index.js'
import { servingOrder, trainingOrder } from '../../nn/layer-order.js'
import { inFewBits } from '../../nn/layers/few-bits.js'
import type { Head, Model } from '../../nn/types.js'
import { runBaseline, runStage, type Stage } from './pipeline.js'
import { runForward, runLayerwise } from './schedules.js'
import { createStash, SavedActivations } from './stash.js'
import { addScore, type DeviceMeter, deviceMeter, type StepContext } from './step.js'
import {
  type Batch,
  type ExecutorOptions,
  keepsAll,
  type ParameterStore,
  type Schedule,
  type Stash,
  type StepScore
} from './types.js'

/** Identifies a training step, and a worker's share of its minibatch. */
export interface TrainStep {
  /** Number of updates that made the weights; layers that take part later are omitted. @default all layers take part */
  readonly updates?: number
  /** Seed of dropout and skips. @default one more than in the previous step */
  readonly step?: number
  /** Index of the batch's first microbatch within the minibatch. @default 0 */
  readonly firstMicrobatch?: number
  /** What this device executes of a pipeline. @default everything */
  readonly stage?: Stage
}

const ALL_LAYERS = Number.POSITIVE_INFINITY

export class Executor {
  readonly model: Model
  readonly schedule: Schedule
  readonly meter: DeviceMeter
  /** Peak bytes of stashed tensors in host memory. */
  stashPeakBytes = 0
  readonly #outputs: Stash
  readonly #gradients: Stash
  /** Activations in host memory. */
  readonly #activations = createStash('host')
  #steps = 0

  /** @throws OptionError for conflicting options */
  constructor(
    model: Model,
    readonly options: ExecutorOptions
  ) {
    const { schedule = 'l2l', microbatch, stash = 'device', bits } = options
    checkSchedule({ schedule, microbatch, stash, bits })
    this.model = inFewBits(model, bits)
    this.schedule = schedule
    this.meter = deviceMeter()
    const isMixed = options.layers?.some(({ outputs }) => outputs === 'device') ?? false
    this.#outputs = createStash(stash, isMixed)
    this.#gradients = createStash(stash, isMixed)
  }

  /**
   * Forward and backward pass of one minibatch. Pushes each layer's gradient sum to the store, the last layer first.
   * @returns summed loss and hits of the training pass, with dropout
   * @throws DeviceError, DivergenceError; the device is left clean, but gradients of upper layers may have been pushed
   */
  train(store: ParameterStore, batch: Batch, trainStep: TrainStep = {}): StepScore {
    const { updates = ALL_LAYERS, step = this.#steps++, firstMicrobatch = 0, stage } = trainStep
    const score = { loss: 0, hits: 0 }
    const context: StepContext = {
      model: this.model,
      store,
      batch,
      order: trainingOrder(this.model, step, updates),
      frozen: this.options.frozen,
      microbatch: this.#microbatchRows(batch),
      step,
      firstMicrobatch,
      meter: this.meter,
      score,
      plans: this.options.layers ?? [],
      outputs: this.#outputs,
      saved: new SavedActivations(this.#activations),
      gradients: this.#gradients,
      shared: new Map()
    }
    this.#run(() => {
      const keeps = keepsAll(this.schedule, this.options.stash)
      if (stage !== undefined) runStage(context, stage, !keeps)
      else if (keeps) runBaseline(context)
      else runLayerwise(context, this.schedule === 'l2l-p')
    })
    return score
  }

  /**
   * Summed loss and hits of a minibatch, without dropout.
   * @param updates as for `train`
   */
  score(store: ParameterStore, batch: Batch, updates: number = ALL_LAYERS, outcomes?: OutcomeKind): StepScore {
    const score = { loss: 0, hits: 0 }
    const rows = outcomes && outcomes.kind !== 'sums' ? new Float64Array(batch.size * widthOf(outcomes)) : undefined
    const { head } = this.model
    this.#run(() =>
      runForward(this.#forwardContext(store, batch, updates), (y, from, to) => {
        const targets = batch.targets(from, to)
        const sums = head.score(y, targets, batch.weights?.(from, to))
        if (rows !== undefined) encodeOutcomes(head, y, targets, rows, from)
        targets.dispose()
        addScore(score, sums)
      })
    )
    return { ...score, rows }
  }

  /**
   * The head's predictions for all rows, concatenated.
   * @param updates as for `train`
   */
  predict(store: ParameterStore, batch: Batch, updates: number = ALL_LAYERS): Float32Array {
    const chunks: Float32Array[] = []
    const { head } = this.model
    this.#run(() =>
      runForward(this.#forwardContext(store, batch, updates), y => {
        const predicted = head.predict(y)
        // dataSync may return a view of the backend's memory.
        chunks.push(Float32Array.from(predicted.dataSync()))
        predicted.dispose()
      })
    )
    const all = new Float32Array(chunks.reduce((sum, { length }) => sum + length, 0))
    let offset = 0
    for (const chunk of chunks) {
      all.set(chunk, offset)
      offset += chunk.length
    }
    return all
  }

  close(): void {
    this.#outputs.close()
    this.#gradients.close()
    this.#activations.close()
  }

  #forwardContext(store: ParameterStore, batch: Batch, updates: number) {
    const { model, meter } = this
    const order = servingOrder(model, updates)
    const microbatch = this.#microbatchRows(batch)
    const outputs = this.#outputs
    const { frozen } = this.options
    return { model, store, batch, order, microbatch, meter, outputs, frozen }
  }

  #microbatchRows({ size }: Batch): number {
    return Math.min(size, this.options.microbatch ?? size)
  }

  /** Whether a backend failed or ran out of memory; WebAssembly throws a RuntimeError. */
  #isBackendFailure(error: unknown): boolean {
    return error instanceof BackendError || error instanceof RangeError || (error as Error).name === 'RuntimeError'
  }

  #deviceError({ message }: Error): DeviceError {
    const advice = 'use a smaller --microbatch, --stash host, or another --backend'
    return new DeviceError(`the device failed at ${this.meter.currentOperation} (${message.split('\n')[0]}): ${advice}`)
  }

  /** Runs `work` and leaves nothing on the device or, after an error, in the stash. */
  #run(work: () => void): void {
    this.meter.limitGrowth(this.options.deviceMemory)
    try {
      tf.tidy(work)
    } catch (error) {
      this.#outputs.clear()
      this.#gradients.clear()
      this.#activations.clear()
      throw this.#isBackendFailure(error) ? this.#deviceError(error as Error) : error
    } finally {
      this.meter.limitGrowth()
      const stashes = [this.#outputs, this.#gradients, this.#activations]
      this.stashPeakBytes = Math.max(
        this.stashPeakBytes,
        stashes.reduce((sum, { peakBytes }) => sum + peakBytes, 0)
      )
    }
  }
}

/** @throws OptionError for conflicting options */
export function checkSchedule({ schedule = 'l2l', microbatch, stash = 'device', bits }: ExecutorOptions): void {
  if (bits !== undefined && !(Number.isInteger(bits) && bits >= 1 && bits <= 8)) {
    throw new OptionError(`bits of saved activations must be a whole number from 1 to 8, got ${bits}`)
  }
  if (schedule === 'tensor' && bits !== undefined) {
    throw new OptionError(`schedule tensor does not support bits=${bits}; omit it, or use baseline-ag`)
  }
  if (schedule === 'baseline' && microbatch !== undefined) {
    throw new OptionError('schedule baseline does not support --microbatch; omit it, or use baseline-ag')
  }
  if (keepsAll(schedule, stash) && stash !== 'device') {
    throw new OptionError(`schedule ${schedule} does not support --stash ${stash}; omit it, or use l2l`)
  }
}

/** The least positive float32 number bounds the loss of a probability that was rounded to 0. */
const LEAST = 2 ** -149

/** How outcomes are encoded. @param hasRows whether rows are scored apart from learning, so that each has a prediction */
export function outcomeKindOf({ sample, head }: Model, hasRows: boolean): OutcomeKind {
  if (sample.kind === 'tokens' && head.input.length > 1) return { kind: 'sums', predicts: 'token' }
  if (!hasRows) return { kind: 'sums', predicts: head.classifies ? 'class' : 'number' }
  if (head.classifies) return { kind: 'classes', classes: head.input.at(-1) as number }
  return { kind: 'number', loss: { classifies: false, value: (prediction, label) => 0.5 * (prediction - label) ** 2 } }
}

/**
 * Writes the outcomes of a microbatch.
 * @param y outputs of the last layer
 * @param out those of the minibatch, four numbers for a class and two for a number
 * @param first row of the microbatch
 */
function encodeOutcomes(head: Head, y: Tensor, targets: Tensor, out: Float64Array, first: number): void {
  const predicted = head.predict(y)
  const values = predicted.dataSync()
  const labels = targets.dataSync()
  predicted.dispose()
  if (!head.classifies) {
    const { mean = 0 } = head
    for (const [row, label] of labels.entries()) out.set([label + mean, values[row] + mean], 2 * (first + row))
    return
  }
  const classes = values.length / labels.length
  for (const [row, label] of labels.entries()) {
    const probabilities = values.subarray(row * classes, (row + 1) * classes)
    let best = 0
    for (let c = 1; c < classes; c++) if (probabilities[c] > probabilities[best]) best = c
    const loss = -Math.log(Math.max(LEAST, probabilities[label]))
    out.set([label, best, probabilities[best], loss], 4 * (first + row))
  }
}

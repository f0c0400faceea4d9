/** The relay: takes a minibatch through a model on the device, under one of the four schedules, within the device's memory. */
import * as tf from '@tensorflow/tfjs-core'
import { BackendError, DeviceError } from '../../device/index.js'
import { OptionError } from '../../learner/index.js'
import { servingOrder, trainingOrder } from '../../nn/layer-order.js'
import type { Model } from '../../nn/types.js'
import { runForward } from './forward.js'
import { runLayerwise } from './layerwise.js'
import { type DeviceMeter, deviceMeter } from './meter.js'
import { runBaseline } from './resident.js'
import { createStash } from './stash.js'
import { addScore, type StepContext } from './step.js'
import type { Batch, ParameterStore, Precision, Schedule, Stash, StashLocation, StepScore } from './types.js'

export interface ExecutorOptions {
  /** Default `l2l`. */
  readonly schedule?: Schedule
  /** Rows of a microbatch. Default: the whole minibatch. `baseline` takes no other. */
  readonly microbatch?: number
  /** Where layer outputs wait for the backward pass. Default `device`. On the host, or disk, device memory does not depend on depth. */
  readonly stash?: StashLocation
  /** Most bytes on the device. Default: what it has. */
  readonly deviceMemory?: number
  /** Numbers of layers that keep their insides instead of computing them again. For `l2l` and `l2l-p`. Default: none. */
  readonly keeps?: readonly number[]
  /** Numbers of layers whose weights stay on the device from the forward to the backward pass. For `l2l` and `l2l-p`. Default: none. */
  readonly resident?: readonly number[]
  /** Default `float32`. */
  readonly precision?: Precision
}

/** Which step it is, and a batch's place among those of one step, where several devices share it. */
export interface TrainStep {
  /** Updates that made the weights: layers that come in later are left out. Default: all take part. */
  readonly updates?: number
  /** What dropout and the like are drawn from. Default: one more than in the step before. */
  readonly step?: number
  /** Default 0. */
  readonly firstMicrobatch?: number
}

/** After so many updates all layers take part. */
const ALL_LAYERS = Number.POSITIVE_INFINITY

export class Executor {
  readonly schedule: Schedule
  readonly meter: DeviceMeter
  /** Most bytes of stashed tensors in host memory so far. */
  stashPeakBytes = 0
  readonly #precision: Precision
  readonly #outputs: Stash
  readonly #gradients: Stash
  #steps = 0

  /** @throws OptionError for options that do not go together */
  constructor(
    readonly model: Model,
    private readonly options: ExecutorOptions
  ) {
    const { schedule = 'l2l', microbatch, stash = 'device', deviceMemory } = options
    if (schedule === 'baseline' && microbatch !== undefined) {
      throw new OptionError(
        'schedule baseline takes the whole minibatch at once: leave --microbatch out, or use baseline-ag'
      )
    }
    if (schedule.startsWith('baseline') && stash !== 'device') {
      throw new OptionError(`schedule ${schedule} keeps everything on the device: leave --stash out, or use l2l`)
    }
    this.schedule = schedule
    this.meter = deviceMeter()
    this.meter.limit = deviceMemory ?? Number.POSITIVE_INFINITY
    this.#precision = options.precision ?? 'float32'
    this.#outputs = createStash(stash, this.#precision)
    this.#gradients = createStash(stash === 'device' ? 'device' : 'host', this.#precision)
  }

  /**
   * One minibatch forward and back: the store is given each layer's gradient sum, the last layer's first.
   * @returns summed loss and hits, of the pass with dropout on
   * @throws DeviceError, DivergenceError; nothing is left on the device, but upper layers' gradients may have been taken
   */
  train(store: ParameterStore, batch: Batch, part: TrainStep = {}): StepScore {
    const { updates = ALL_LAYERS, step = this.#steps++, firstMicrobatch = 0 } = part
    const score = { loss: 0, hits: 0 }
    const context: StepContext = {
      model: this.model,
      store,
      batch,
      order: trainingOrder(this.model, step, updates),
      precision: this.#precision,
      microbatch: this.#microbatchRows(batch),
      step,
      firstMicrobatch,
      meter: this.meter,
      score,
      saves: new Set(this.options.keeps),
      resident: new Set(this.options.resident),
      outputs: this.#outputs,
      gradients: this.#gradients
    }
    this.#run(() => {
      if (this.schedule.startsWith('baseline')) runBaseline(context)
      else runLayerwise(context, this.schedule === 'l2l-p')
    })
    return score
  }

  /** Summed loss and hits of a minibatch, without dropout. @param updates as for `train` */
  score(store: ParameterStore, batch: Batch, updates: number = ALL_LAYERS): StepScore {
    const score = { loss: 0, hits: 0 }
    const { head } = this.model
    this.#run(() =>
      runForward(this.#forwardContext(store, batch, updates), (y, from, to) => {
        const targets = batch.targets(from, to)
        const sums = head.score(y, targets)
        targets.dispose()
        addScore(score, sums)
      })
    )
    return score
  }

  /** What the head makes of each microbatch, one after the other, flat. @param updates as for `train` */
  predict(store: ParameterStore, batch: Batch, updates: number = ALL_LAYERS): Float32Array {
    const parts: Float32Array[] = []
    const { head } = this.model
    this.#run(() =>
      runForward(this.#forwardContext(store, batch, updates), y => {
        const predicted = head.predict(y)
        // A backend's own memory may be what is read.
        parts.push(Float32Array.from(predicted.dataSync()))
        predicted.dispose()
      })
    )
    const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0))
    let at = 0
    for (const part of parts) {
      all.set(part, at)
      at += part.length
    }
    return all
  }

  close(): void {
    this.#outputs.close()
    this.#gradients.close()
  }

  #forwardContext(store: ParameterStore, batch: Batch, updates: number) {
    const { model, meter } = this
    const order = servingOrder(model, updates)
    const microbatch = this.#microbatchRows(batch)
    return { model, store, batch, order, microbatch, meter, outputs: this.#outputs, precision: this.#precision }
  }

  #microbatchRows({ size }: Batch): number {
    return Math.min(size, this.options.microbatch ?? size)
  }

  /** What backends throw when their memory ends, or they do; the last is WebAssembly's. */
  #isBackendFailure(error: unknown): boolean {
    return error instanceof BackendError || error instanceof RangeError || (error as Error).name === 'RuntimeError'
  }

  #deviceError({ message }: Error): DeviceError {
    const advice = 'use a smaller --microbatch, --stash host, or another --backend'
    return new DeviceError(`the device failed at ${this.meter.currentOperation} (${message.split('\n')[0]}): ${advice}`)
  }

  /** Leaves nothing on the device or in the stash, whatever happens. */
  #run(work: () => void): void {
    try {
      tf.tidy(work)
    } catch (error) {
      this.#outputs.clear()
      this.#gradients.clear()
      throw this.#isBackendFailure(error) ? this.#deviceError(error as Error) : error
    } finally {
      this.stashPeakBytes = Math.max(this.stashPeakBytes, this.#outputs.peakBytes + this.#gradients.peakBytes)
    }
  }
}

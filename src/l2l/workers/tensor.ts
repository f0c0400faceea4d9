/**
 * Tensor parallelism (Shoeybi et al., "Megatron-LM", 2019, section 3): all devices execute the same microbatches, and of each layer that
 * splits a share. Each sums the addends of all in the order of the devices, so that all have the same bits. The first device also
 * has the gradients of layers that do not split.
 */
import * as tf from '#tfjs'
import { blockShare, type DeviceShare, mergedGradients, modelShare } from '../../nn/split.js'
import { FLOAT_BYTES, type Model, sizeOf } from '../../nn/types.js'
import type { DenseRows } from '../dense-rows.js'
import { Executor, type TrainStep } from '../executor/executor.js'
import { AbortedError } from '../executor/pipeline.js'
import type { ExecutorOptions, ParameterStore, StepScore } from '../executor/types.js'
import { type GroupStep, ModelGroup } from './stages.js'
import { ABORTED, awaitChange, MAIL, wakeStages } from './worker-handle.js'

/** What the first device knows of the others. */
interface Others {
  /** Returns the gradients of the next layer of another device. */
  collect(device: number): readonly Float32Array[]
  /** Whether the thread of one has ended. */
  hasEnded(): boolean
}

/** One device of the group. */
export class TensorDevice {
  /** Milliseconds that the step has waited for others. */
  waitedMs = 0
  readonly #executor: Executor
  #others: Others | undefined
  #attempt = 0
  /** Number of sums in this step. */
  #sums = 0
  /** Number of addends that each device has written in this step. */
  #written: Int32Array = new Int32Array(0)
  /** Two places for addends of each device: it writes the next one while others read. */
  #addends: readonly (readonly Float32Array[])[] = []

  private constructor(
    private readonly model: Model,
    options: ExecutorOptions,
    private readonly cells: Int32Array,
    private readonly share: DeviceShare
  ) {
    const own = modelShare(model, share, addend => this.#sum(addend))
    this.#executor = new Executor(own, options)
  }

  /** The same device while its share is, or else a new one. */
  static of(
    before: TensorDevice | undefined,
    model: Model,
    options: ExecutorOptions,
    cells: Int32Array,
    { device, devices }: DeviceShare
  ): TensorDevice {
    if (before?.share.device === device && before.share.devices === devices) return before
    before?.close()
    return new TensorDevice(model, options, cells, { device, devices })
  }

  /** Bytes of shared memory for the addends of a microbatch. */
  static bytes({ layers }: Model, devices: number, microbatch: number): number {
    // Inputs and outputs have the same shape.
    const max = Math.max(...layers.map(({ split, output }) => (split ? sizeOf(output) : 0)))
    return Int32Array.BYTES_PER_ELEMENT * devices + 2 * devices * FLOAT_BYTES * microbatch * max
  }

  /** As `Executor.train`. @throws AbortedError if another device has failed */
  train(
    store: ParameterStore,
    rows: DenseRows,
    task: Omit<TrainStep, 'stage'> & { readonly attempt: number },
    shared: SharedArrayBuffer,
    others?: Others
  ): StepScore {
    const { devices } = this.share
    this.#others = others
    this.#attempt = task.attempt
    this.#sums = 0
    this.waitedMs = 0
    this.#written = new Int32Array(shared, 0, devices)
    const all = new Float32Array(shared, this.#written.byteLength)
    const length = all.length / (2 * devices)
    const at = (i: number) => all.subarray(i * length, (i + 1) * length)
    this.#addends = [0, 1].map(turn => Array.from({ length: devices }, (_, device) => at(turn * devices + device)))
    const { step, updates } = task
    return this.#executor.train(new ShareStore(this.model, store, this.share, others), rows, { step, updates })
  }

  close(): void {
    this.#executor.close()
  }

  /** A device writes the addend after next only when all others have written the next one, and so have read this one. */
  #sum(addend: tf.Tensor): tf.Tensor {
    const { shape } = addend
    const places = this.#addends[this.#sums++ % 2]
    places[this.share.device].set(addend.dataSync() as Float32Array)
    addend.dispose()
    Atomics.store(this.#written, this.share.device, this.#sums)
    wakeStages(this.cells)
    this.#await()
    const sum = places[0].slice(0, sizeOf(shape))
    for (const place of places.slice(1)) for (let i = 0; i < sum.length; i++) sum[i] += place[i]
    return tf.tensor(sum, shape, 'float32')
  }

  #await(): void {
    const start = performance.now()
    for (;;) {
      const seen = Atomics.load(this.cells, MAIL)
      if (Atomics.load(this.cells, ABORTED) === this.#attempt) throw new AbortedError()
      if (this.#written.every((_, device) => Atomics.load(this.#written, device) >= this.#sums)) break
      // Another device has failed, which the pool finds.
      if (!awaitChange(this.cells, MAIL, seen, this.#others?.hasEnded)) throw new AbortedError()
    }
    this.waitedMs += performance.now() - start
  }
}

/** Reads a device's share of the weights. The first device pushes the gradients of all, and others those of layers that split. */
class ShareStore implements ParameterStore {
  readonly reusesMemory: boolean | undefined

  constructor(
    private readonly model: Model,
    private readonly store: ParameterStore,
    private readonly share: DeviceShare,
    private readonly others?: Others
  ) {
    this.reusesMemory = store.reusesMemory
  }

  weights(l: number): Float32Array {
    const layer = this.model.layers[l]
    const block = this.store.weights(l)
    return layer.split === undefined ? block : blockShare(layer, block, this.share)
  }

  pushGradients(l: number, gradients: readonly Float32Array[]): void {
    const layer = this.model.layers[l]
    const { others } = this
    if (layer.split === undefined) {
      if (others !== undefined) this.store.pushGradients(l, gradients)
    } else if (others === undefined) this.store.pushGradients(l, gradients)
    else {
      const theirs = Array.from({ length: this.share.devices - 1 }, (_, device) => others.collect(device + 1))
      this.store.pushGradients(l, [mergedGradients(layer, [gradients, ...theirs])])
    }
  }

  skip(l: number): void {
    this.store.skip(l)
  }
}

/** The devices of a step: this thread's is the first. */
export class TensorDevices extends ModelGroup {
  #own: TensorDevice | undefined
  #shared = new SharedArrayBuffer(0)

  constructor(private readonly cells: Int32Array) {
    super()
  }

  protected override execute(...[{ model, options }, workers, store, rows, task, collect]: GroupStep) {
    const devices = workers.length + 1
    const bytes = TensorDevice.bytes(model, devices, Math.min(rows.size, options.microbatch ?? rows.size))
    if (this.#shared.byteLength !== bytes) this.#shared = new SharedArrayBuffer(bytes)
    new Int32Array(this.#shared, 0, devices).fill(0)
    const own = TensorDevice.of(this.#own, model, options, this.cells, { device: 0, devices })
    this.#own = own
    for (const [i, worker] of workers.entries()) {
      worker.submit({ ...task, tensor: { device: i + 1, devices, shared: this.#shared } })
    }
    const score = own.train(store, rows, task, this.#shared, {
      collect: device => collect(device - 1),
      hasEnded: () => workers.some(worker => worker.hasEnded())
    })
    return { score, waitedMs: own.waitedMs }
  }

  override close(): void {
    this.#own?.close()
  }
}

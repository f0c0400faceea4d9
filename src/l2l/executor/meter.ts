/**
 * Measures and limits the bytes on the device: every buffer of the TensorFlow.js engine from allocation to disposal,
 * shared buffers counted once. The engine's own count has no peak and no limit. Temporary memory of running kernels is
 * not counted.
 */
import * as tf from '#tfjs'
import { formatExcess } from '../../base/format-bytes.js'
import { DeviceError } from '../../device/index.js'

/** The internals of the engine that track the allocation and disposal of buffers. */
interface Engine {
  readonly state: {
    readonly numBytes: number
    readonly tensorInfo: { has(id: object): boolean; get(id: object): { readonly bytes: number } | undefined }
  }
  trackTensor(tensor: tf.Tensor, backend: unknown): void
  removeDataId(id: object, backend: unknown): void
}

export class DeviceMeter {
  bytes = 0
  peakBytes = 0
  /** Limit of the bytes on the device. */
  limit: number = Number.POSITIVE_INFINITY
  /** What the device executes, for error messages. */
  currentOperation = 'the minibatch'

  /** Resets the peak to the current size. */
  resetPeak(): void {
    this.peakBytes = this.bytes
  }

  allocate(bytes: number): void {
    this.bytes += bytes
    if (this.bytes > this.peakBytes) this.peakBytes = this.bytes
    if (this.bytes > this.limit) throw new OverBudgetError(this.currentOperation, this.bytes, this.limit)
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
  const engine = tf.engine() as unknown as Engine
  const { tensorInfo } = engine.state
  const track = engine.trackTensor.bind(engine)
  const remove = engine.removeDataId.bind(engine)
  engine.trackTensor = (tensor, backend) => {
    const isNew = !tensorInfo.has(tensor.dataId)
    track(tensor, backend)
    if (isNew) created.allocate(tensorInfo.get(tensor.dataId)?.bytes ?? 0)
  }
  engine.removeDataId = (id, backend) => {
    const bytes = tensorInfo.get(id)?.bytes ?? 0
    remove(id, backend)
    if (!tensorInfo.has(id)) created.bytes -= bytes
  }
  created.bytes = engine.state.numBytes
  meter = created
  return meter
}

/**
 * What is on the device, to the byte: every buffer of the TensorFlow.js engine from its making to its end, shared buffers
 * counted once. The engine's own count has no peak and no limit. What a kernel holds only while it runs is not seen.
 */
import * as tf from '@tensorflow/tfjs-core'
import { DeviceError } from '../../device/index.js'
import { formatBytes } from '../format-bytes.js'

/** The parts of the engine that see all buffers come and go. */
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
  /** Most bytes that may be on the device. */
  limit: number = Number.POSITIVE_INFINITY
  /** What the device is busy with, for messages. */
  currentOperation = 'the minibatch'

  /** Starts the peak anew. */
  resetPeak(): void {
    this.peakBytes = this.bytes
  }

  allocate(bytes: number): void {
    this.bytes += bytes
    if (this.bytes > this.peakBytes) this.peakBytes = this.bytes
    if (this.bytes > this.limit) throw new OverBudgetError(this.currentOperation, this.bytes, this.limit)
  }
}

/** The device's memory limit was met while a layer was executed. */
export class OverBudgetError extends DeviceError {
  constructor(
    readonly what: string,
    readonly bytes: number,
    readonly limit: number,
    advice = 'use a smaller --microbatch, --stash host, or --schedule l2l'
  ) {
    super(
      `${what} needs at least ${formatBytes(bytes)} on the device, --device-memory allows ${formatBytes(limit)}: ${advice}`
    )
  }
}

let meter: DeviceMeter | undefined

/** The engine is one for the whole program, and so is its meter. */
export function deviceMeter(): DeviceMeter {
  if (meter !== undefined) return meter
  const counted = new DeviceMeter()
  const engine = tf.engine() as unknown as Engine
  const { tensorInfo } = engine.state
  const track = engine.trackTensor.bind(engine)
  const remove = engine.removeDataId.bind(engine)
  engine.trackTensor = (tensor, backend) => {
    const isNew = !tensorInfo.has(tensor.dataId)
    track(tensor, backend)
    if (isNew) counted.allocate(tensorInfo.get(tensor.dataId)?.bytes ?? 0)
  }
  engine.removeDataId = (id, backend) => {
    const bytes = tensorInfo.get(id)?.bytes ?? 0
    remove(id, backend)
    if (!tensorInfo.has(id)) counted.bytes -= bytes
  }
  counted.bytes = engine.state.numBytes
  meter = counted
  return meter
}

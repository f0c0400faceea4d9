/**
 * TensorFlow.js's WebGPU backend as the relay needs it. Tensors are read synchronously; its own way to do that takes a canvas,
 * which Node.js lacks. And what fails on the GPU is thrown where it was asked for, in place of a line on the terminal and
 * zeros in the result.
 */
import * as tf from '@tensorflow/tfjs-core'
import { BackendError } from './types.js'
import type { DawnEvents } from './webgpu-events.js'

/** The parts of the backend that are used or replaced here. */
export interface WebgpuBackend {
  readonly device: {
    addEventListener(event: 'uncapturederror', listener: (event: GpuErrorEvent) => void): void
  }
  readonly queue: { writeBuffer(to: GpuBuffer, at: number, values: Float32Array | Int32Array): void }
  readonly tensorMap: { get(id: object): TensorData }
  readonly bufferManager: BufferManager
  readonly commandEncoder: {
    copyBufferToBuffer(from: GpuBuffer, fromAt: number, to: GpuBuffer, toAt: number, bytes: number): void
  } | null
  ensureCommandEncoderReady(): void
  endComputePassEncoder(): void
  submitQueue(): void
  disposeData(id: object): boolean
  makeTensorInfo(shape: readonly number[], dtype: tf.DataType, values: tf.TypedArray): tf.TensorInfo
  runWebGPUProgram(...program: unknown[]): tf.TensorInfo
  uploadToGPU(id: object): void
  write(values: tf.BackendValues | null, shape: number[], dtype: tf.DataType): object
  readSync(id: object): tf.TypedArray
  read(id: object): Promise<tf.TypedArray>
}

interface TensorData {
  readonly dtype: tf.DataType
  /** On the host, until they are uploaded. */
  values?: tf.TypedArray
  resource?: GpuBuffer
}

interface GpuErrorEvent {
  readonly error: { readonly message: string }
  preventDefault(): void
}

export interface GpuBuffer {
  readonly size: number
  readonly mapState: 'unmapped' | 'pending' | 'mapped'
  mapAsync(mode: number): Promise<void>
  getMappedRange(): ArrayBuffer
  unmap(): void
  destroy(): void
}

interface BufferManager {
  /** Those in use, and those that were given back and wait to be used again. */
  numBytesAllocated: number
  numFreeBuffers: number
  readonly freeBuffers: Map<string, GpuBuffer[]>
  acquireBuffer(bytes: number, usage: number, ...more: boolean[]): GpuBuffer
  releaseBuffer(buffer: GpuBuffer, isKept?: boolean): void
}

/** Numbers that WebGPU gives these: usage COPY_DST | MAP_READ, and map mode READ. */
const STAGING = 0x9
const READ = 0x1

/**
 * Once for each backend.
 * @returns the most bytes of GPU memory that were allocated at once
 */
export function patchBackend(backend: WebgpuBackend, events: DawnEvents): () => number {
  const failures = new Failures(backend)
  backend.readSync = id => readTensor(backend, events, failures, id)
  backend.read = async id => backend.readSync(id)
  // Its own way is to wait for the first use: then tensors would go on reading what the host may write to by then.
  const write = backend.write.bind(backend)
  backend.write = (values, shape, dtype) => {
    const id = write(values, shape, dtype)
    if (!values?.length || dtype === 'string') return id
    try {
      backend.uploadToGPU(id)
    } catch (error) {
      backend.disposeData(id)
      throw error
    }
    return id
  }
  const run = backend.runWebGPUProgram.bind(backend)
  backend.runWebGPUProgram = (...program) => {
    const output = run(...program)
    failures.check(() => backend.disposeData(output.dataId))
    return output
  }
  return meterBuffers(backend, failures)
}

/** What WebGPU reports of calls that seem to have worked. */
class Failures {
  #message: string | undefined

  constructor(private readonly backend: WebgpuBackend) {
    backend.device.addEventListener('uncapturederror', event => {
      event.preventDefault()
      this.#message ??= event.error.message.split('\n')[0]
    })
  }

  /** What failed since this was asked the last time. */
  take(): string | undefined {
    const message = this.#message
    this.#message = undefined
    return message
  }

  /** @throws BackendError if something failed, after `undo` and after forgetting what was planned together with it */
  check(undo?: () => void): void {
    const message = this.take()
    if (message === undefined) return
    undo?.()
    submit(this.backend)
    this.take()
    throw new BackendError(message)
  }
}

function readTensor(backend: WebgpuBackend, events: DawnEvents, failures: Failures, id: object): tf.TypedArray {
  const { dtype, values, resource } = backend.tensorMap.get(id)
  // Empty, or of strings.
  if (values || resource === undefined) return values as tf.TypedArray
  const staging = backend.bufferManager.acquireBuffer(resource.size, STAGING)
  backend.ensureCommandEncoderReady()
  backend.endComputePassEncoder()
  backend.commandEncoder?.copyBufferToBuffer(resource, 0, staging, 0, resource.size)
  backend.submitQueue()
  events.call(() => staging.mapAsync(READ)).catch(() => undefined)
  events.wait(() => staging.mapState === 'pending')
  if (staging.mapState !== 'mapped') {
    events.drain()
    throw new BackendError(failures.take() ?? 'the GPU was lost')
  }
  const bytes = staging.getMappedRange().slice(0)
  staging.unmap()
  backend.bufferManager.releaseBuffer(staging)
  failures.check()
  return tf.util.convertBackendValuesAndArrayBuffer(bytes, dtype) as tf.TypedArray
}

/** Buffers that there is no memory for are asked for once more without those that only wait for another use, and then throw. */
function meterBuffers(backend: WebgpuBackend, failures: Failures): () => number {
  const manager = backend.bufferManager
  let peakBytes = 0
  const acquire = manager.acquireBuffer.bind(manager)
  manager.acquireBuffer = (...asked) => {
    failures.check()
    let buffer = acquire(...asked)
    if (failures.take() !== undefined) {
      manager.releaseBuffer(buffer, false)
      // What is recorded may still be using some of them.
      submit(backend)
      destroyFreeBuffers(manager)
      buffer = acquire(...asked)
      failures.check(() => manager.releaseBuffer(buffer, false))
    }
    peakBytes = Math.max(peakBytes, manager.numBytesAllocated)
    return buffer
  }
  return () => peakBytes
}

/** Sends off what was recorded. */
function submit(backend: WebgpuBackend): void {
  backend.endComputePassEncoder()
  if (backend.commandEncoder !== null) backend.submitQueue()
}

function destroyFreeBuffers(manager: BufferManager): void {
  for (const buffers of manager.freeBuffers.values()) {
    for (const buffer of buffers.splice(0)) {
      manager.numBytesAllocated -= buffer.size
      manager.numFreeBuffers--
      buffer.destroy()
    }
  }
}

/**
 * Patches TensorFlow.js's WebGPU backend for the executor. Tensors are read synchronously without a canvas, which
 * Node.js lacks. GPU errors are thrown by the operation that failed, instead of being logged and returning zeros.
 */
import * as tf from '#tfjs'
import { BackendError } from './types.js'
import type { DawnEvents } from './webgpu-events.js'

/** The parts of the backend that are used or replaced here. */
export interface WebgpuBackend {
  readonly device: {
    addEventListener(event: 'uncapturederror', listener: (event: GpuErrorEvent) => void): void
  }
  readonly queue: { writeBuffer(to: GpuBuffer, offset: number, values: Float32Array | Int32Array): void }
  readonly tensorMap: { get(id: object): TensorData }
  readonly bufferManager: BufferManager
  readonly commandEncoder: {
    copyBufferToBuffer(from: GpuBuffer, fromOffset: number, to: GpuBuffer, toOffset: number, bytes: number): void
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
  /** On the host, before the upload. */
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
  /** Includes free buffers, which are kept for reuse. */
  numBytesAllocated: number
  numFreeBuffers: number
  readonly freeBuffers: Map<string, GpuBuffer[]>
  acquireBuffer(bytes: number, usage: number, ...more: boolean[]): GpuBuffer
  releaseBuffer(buffer: GpuBuffer, isReusable?: boolean): void
}

/** WebGPU constants: usage COPY_DST | MAP_READ, and map mode READ. */
const STAGING = 0x9
const READ = 0x1

/**
 * Call it once per backend.
 * @returns a function that returns the peak bytes of GPU memory
 */
export function patchBackend(backend: WebgpuBackend, events: DawnEvents): () => number {
  const failures = new Failures(backend)
  backend.readSync = id => readTensor(backend, events, failures, id)
  backend.read = async id => backend.readSync(id)
  // By default tensors are uploaded at first use, when the host may already have changed the array.
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

/** Collects errors that WebGPU reports asynchronously. */
class Failures {
  #message: string | undefined

  constructor(private readonly backend: WebgpuBackend) {
    backend.device.addEventListener('uncapturederror', event => {
      event.preventDefault()
      this.#message ??= event.error.message.split('\n')[0]
    })
  }

  /** The first error since the last call. */
  take(): string | undefined {
    const message = this.#message
    this.#message = undefined
    return message
  }

  /**
   * @throws BackendError if an error was reported, after calling `undo` and discarding the commands recorded with it
   */
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
  // An empty tensor, or a tensor of strings.
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

/** Measures buffers. If an allocation fails, frees unused buffers and retries once before throwing. */
function meterBuffers(backend: WebgpuBackend, failures: Failures): () => number {
  const manager = backend.bufferManager
  let peakBytes = 0
  const acquire = manager.acquireBuffer.bind(manager)
  manager.acquireBuffer = (...args) => {
    failures.check()
    let buffer = acquire(...args)
    if (failures.take() !== undefined) {
      manager.releaseBuffer(buffer, false)
      // Recorded commands may still use some of the free buffers.
      submit(backend)
      destroyFreeBuffers(manager)
      buffer = acquire(...args)
      failures.check(() => manager.releaseBuffer(buffer, false))
    }
    peakBytes = Math.max(peakBytes, manager.numBytesAllocated)
    return buffer
  }
  return () => peakBytes
}

/** Submits the recorded commands. */
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

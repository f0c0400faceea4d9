/**
 * Patches TensorFlow.js's WebGPU backend for the executor. Tensors are read synchronously without a canvas, which
 * Node.js lacks. GPU errors are thrown by the operation that failed, instead of being logged and returning zeros.
 */
import * as tf from '#tfjs'
import { BackendError } from './types.js'

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

/**
 * Runs Dawn's event processing on demand. The package webgpu completes operations (adapter requests, buffer mappings)
 * in callbacks that it schedules with the global `setImmediate` while operations are pending. A thread that waits for a
 * buffer without returning to its event loop would block forever. Therefore calls to Dawn run with a `setImmediate`
 * that stores the callback for `wait`.
 */
type Callback = () => void

/** Number of polls before pausing between polls. */
const EAGER_POLLS = 20
const PAUSE_MS = 0.05

export class DawnEvents {
  #callbacks: Callback[] = []
  readonly #sleeper = new Int32Array(new SharedArrayBuffer(4))

  /** Calls Dawn. Every call that may start an asynchronous operation must go through this method. */
  call<T>(call: () => T): T {
    const original = globalThis.setImmediate
    globalThis.setImmediate = ((callback: Callback) => this.#callbacks.push(callback)) as unknown as typeof setImmediate
    try {
      return call()
    } finally {
      globalThis.setImmediate = original
    }
  }

  /** Calls Dawn and awaits its promise without blocking the event loop. */
  async waitAsync<T>(call: () => Promise<T>): Promise<T> {
    const promise = this.call(call)
    let isPending = true
    const drain = () => {
      isPending = false
    }
    promise.then(drain, drain)
    for (let polls = 0; isPending; polls++) {
      this.#poll()
      await (polls < EAGER_POLLS ? undefined : new Promise(resolve => setTimeout(resolve, 1)))
    }
    return promise
  }

  /** Blocks the thread while `isPending`. @throws BackendError if Dawn has no pending operation */
  wait(isPending: () => boolean): void {
    for (let polls = 0; isPending(); polls++) {
      if (!this.#poll()) throw new BackendError('this version of the package webgpu is not supported')
      if (polls >= EAGER_POLLS && isPending()) Atomics.wait(this.#sleeper, 0, 0, PAUSE_MS)
    }
  }

  /** Completes cancelled operations: Dawn aborts the process if a promise is dropped. */
  drain(): void {
    for (let polls = 0; polls < EAGER_POLLS && this.#poll(); polls++);
  }

  /** Runs stored callbacks. @returns whether there were any */
  #poll(): boolean {
    const callbacks = this.#callbacks
    this.#callbacks = []
    for (const callback of callbacks) this.call(callback)
    return callbacks.length > 0
  }
}

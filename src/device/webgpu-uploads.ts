/**
 * Uploads through the WebGPU queue. By default the backend creates a mapped buffer per tensor, which the driver
 * allocates and clears, and records a copy from it. The queue copies values immediately into memory that it reuses.
 *
 * Ordering is preserved: the backend reuses a buffer only after it has submitted all commands that use it.
 */
import type * as tf from '#tfjs'
import type { GpuBuffer, WebgpuBackend } from './webgpu-backend.js'

type Numbers = Float32Array | Int32Array

/** STORAGE | COPY_SRC | COPY_DST, as in the backend, whose buffer pool is keyed by size and usage. */
const USAGE = 0x8c
/** Numbers copied out of shared memory at a time: few enough to stay in the CPU cache. */
const CHUNK = 2 ** 20

/** Call it once per backend. */
export function uploadThroughQueue(backend: WebgpuBackend): void {
  const upload = backend.uploadToGPU.bind(backend)
  const writer = new QueueWriter(backend)
  backend.uploadToGPU = id => {
    const data = backend.tensorMap.get(id)
    // Without values the call allocates an output buffer.
    if (data.resource || !data.values?.length) return upload(id)
    const numbers = asOnDevice(data.values, data.dtype)
    const buffer = backend.bufferManager.acquireBuffer(numbers.byteLength, USAGE)
    writer.write(buffer, numbers)
    data.resource = buffer
    data.values = undefined
  }
}

class QueueWriter {
  #chunk: ArrayBuffer | undefined

  constructor(private readonly backend: WebgpuBackend) {}

  /**
   * Copies values out of shared memory first, because the package webgpu exits the process when it reads shared memory.
   */
  write(buffer: GpuBuffer, numbers: Numbers): void {
    const { queue } = this.backend
    if (!(numbers.buffer instanceof SharedArrayBuffer)) {
      queue.writeBuffer(buffer, 0, numbers)
      return
    }
    this.#chunk ??= new ArrayBuffer(4 * CHUNK)
    for (let offset = 0; offset < numbers.length; offset += CHUNK) {
      const values = numbers.subarray(offset, offset + CHUNK)
      const copy = new (numbers instanceof Float32Array ? Float32Array : Int32Array)(this.#chunk, 0, values.length)
      copy.set(values)
      queue.writeBuffer(buffer, 4 * offset, copy)
    }
  }
}

/** Converts to four bytes per number; booleans are integers on the device. */
function asOnDevice(values: tf.TypedArray, dtype: tf.DataType): Numbers {
  if (dtype === 'float32') return values instanceof Float32Array ? values : Float32Array.from(values)
  return values instanceof Int32Array ? values : Int32Array.from(values)
}

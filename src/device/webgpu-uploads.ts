/**
 * Uploads of the WebGPU backend through the queue. The backend's own way creates a mapped buffer for each tensor, which the
 * driver allocates and clears first, and records a copy from it. The queue copies values at once into memory that it reuses.
 *
 * The order is the same: the backend gives a buffer to another tensor only after it has submitted all commands that use it.
 */
import type * as tf from '@tensorflow/tfjs-core'
import type { GpuBuffer, WebgpuBackend } from './webgpu-backend.js'

type Numbers = Float32Array | Int32Array

/** STORAGE | COPY_SRC | COPY_DST, as in the backend, whose pool of buffers is by size and usage. */
const USAGE = 0x8c
/** Numbers that are copied out of shared memory at once: few enough to stay in the processor's cache. */
const COPIED = 2 ** 20

/** Once for each backend. */
export function uploadThroughQueue(backend: WebgpuBackend): void {
  const upload = backend.uploadToGPU.bind(backend)
  const writer = new Writer(backend)
  backend.uploadToGPU = id => {
    const data = backend.tensorMap.get(id)
    // Without values the call allocates the buffer of an output.
    if (data.resource || !data.values?.length) return upload(id)
    const numbers = asOnDevice(data.values, data.dtype)
    const buffer = backend.bufferManager.acquireBuffer(numbers.byteLength, USAGE)
    writer.write(buffer, numbers)
    data.resource = buffer
    data.values = undefined
  }
}

class Writer {
  #copy: ArrayBuffer | undefined

  constructor(private readonly backend: WebgpuBackend) {}

  /** Copies values out of shared memory first, which the package webgpu cannot read: it ends the process. */
  write(buffer: GpuBuffer, numbers: Numbers): void {
    const { queue } = this.backend
    if (!(numbers.buffer instanceof SharedArrayBuffer)) {
      queue.writeBuffer(buffer, 0, numbers)
      return
    }
    this.#copy ??= new ArrayBuffer(4 * COPIED)
    for (let at = 0; at < numbers.length; at += COPIED) {
      const part = numbers.subarray(at, at + COPIED)
      const copy = new (numbers instanceof Float32Array ? Float32Array : Int32Array)(this.#copy, 0, part.length)
      copy.set(part)
      queue.writeBuffer(buffer, 4 * at, copy)
    }
  }
}

/** Four bytes a number: truth values are integers on the device. */
function asOnDevice(values: tf.TypedArray, dtype: tf.DataType): Numbers {
  if (dtype === 'float32') return values instanceof Float32Array ? values : Float32Array.from(values)
  return values instanceof Int32Array ? values : Int32Array.from(values)
}

/**
 * Counts the work of a step on the WebGPU backend: programs dispatched, tensors uploaded and read back. Each read-back waits until the
 * GPU has finished all submitted work, so its time is that of waiting and copying on the host.
 */
import * as tf from '#tfjs'
import type { WebgpuBackend } from '../../src/device/webgpu-backend.js'

export interface Counts {
  readonly dispatches: number
  readonly uploads: number
  readonly uploadBytes: number
  /** Milliseconds that the host spends copying into upload buffers. */
  readonly uploadMs: number
  readonly readBacks: number
  readonly readBackBytes: number
  readonly readBackMs: number
}

const NONE: Counts = {
  dispatches: 0,
  uploads: 0,
  uploadBytes: 0,
  uploadMs: 0,
  readBacks: 0,
  readBackBytes: 0,
  readBackMs: 0
}

/** @returns the counts since the last call, or undefined on a backend other than WebGPU */
export function countCalls(): () => Counts | undefined {
  if (tf.getBackend() !== 'webgpu') return () => undefined
  const backend = tf.backend() as unknown as WebgpuBackend
  let counts: { -readonly [key in keyof Counts]: number } = { ...NONE }
  const run = backend.runWebGPUProgram.bind(backend)
  backend.runWebGPUProgram = (...program) => {
    counts.dispatches++
    return run(...program)
  }
  const upload = backend.uploadToGPU.bind(backend)
  backend.uploadToGPU = id => {
    const { values, resource } = backend.tensorMap.get(id)
    const start = performance.now()
    upload(id)
    // Without values the call allocates the buffer of an output.
    if (resource !== undefined || !values) return
    counts.uploads++
    counts.uploadBytes += values.byteLength
    counts.uploadMs += performance.now() - start
  }
  const read = backend.readSync.bind(backend)
  backend.readSync = id => {
    const start = performance.now()
    const values = read(id)
    counts.readBacks++
    counts.readBackBytes += values.byteLength
    counts.readBackMs += performance.now() - start
    return values
  }
  return () => {
    const counted = counts
    counts = { ...NONE }
    return counted
  }
}

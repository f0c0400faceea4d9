/**
 * The memory of a parameter server's arrays. The kernels of update rules work in it without copies, unless the arrays are small or
 * larger than one memory of WebAssembly can be.
 */
import { type SharedMemory, sharedMemory } from '../../base/assembler.js'
import { KERNEL_BYTES, releaseKernelMemory, useKernelMemory, VECTOR_BYTES } from '../../learner/index.js'

/** Smaller arrays are copied in little time, and a memory reserves addresses. */
const LEAST_BYTES = 2 ** 20

interface ServerMemoryOptions {
  /** Of all arrays. */
  readonly bytes: number
  /** Number of arrays, at most. */
  readonly arrays: number
  /** Number of threads that update them. */
  readonly threads: number
  /** Whether several threads use them. */
  readonly isShared: boolean
}

export class ServerMemory {
  readonly #isShared: boolean
  /** For the kernels of each thread; undefined if they copy. */
  readonly shared: SharedMemory | undefined
  #at: number

  constructor({ bytes, arrays, threads, isShared }: ServerMemoryOptions) {
    this.#isShared = isShared
    this.#at = threads * KERNEL_BYTES
    this.shared = bytes < LEAST_BYTES ? undefined : sharedMemory(this.#at + bytes + VECTOR_BYTES * arrays)
  }

  allocate(length: number): Float32Array {
    if (this.shared === undefined)
      return this.#isShared ? new Float32Array(new SharedArrayBuffer(4 * length)) : new Float32Array(length)
    this.#at += padded(length)
    return new Float32Array(this.shared.buffer, this.#at - padded(length), length)
  }
}

function padded(length: number): number {
  return Math.ceil((4 * length) / VECTOR_BYTES) * VECTOR_BYTES
}

/** The kernels of this thread work in the memory. @param thread its number */
export function enterServerMemory(memory: SharedMemory | undefined, thread: number): void {
  if (memory) useKernelMemory(memory, thread * KERNEL_BYTES)
}

export function leaveServerMemory(memory: SharedMemory | undefined): void {
  if (memory) releaseKernelMemory(memory)
}

/**
 * Memory of the parameter server: each layer's parameters and optimizer state, and slots for gradients waiting to be
 * applied.
 */

import {
  areFinite,
  KERNEL_BYTES,
  mixInto,
  releaseKernelMemory,
  type UpdateRule,
  useKernelMemory,
  VECTOR_BYTES,
  type WeightedAveraging
} from '../../learning/index.js'
import { type SharedMemory, sharedMemory } from '../../numeric/wasm-memory.js'

/** The host's memory of one layer. */
export interface BlockMemory {
  readonly parameters: Float32Array
  /** The same array as `parameters` if no average is maintained. */
  readonly average: Float32Array
  /** The update rule's state of this block. */
  readonly state: readonly Float32Array[]
}

/** Where the parameter server's blocks are. */
export interface BlockStorage {
  /** Bytes of memory. */
  readonly bytes: number
  /** Milliseconds that calls have waited. */
  readonly waitedMs: number
  /** A minibatch begins. */
  begin(): void
  /** Weights of a block, which stay in memory until the next call. */
  parameters(block: number): Float32Array
  /** Its average, in the same way. */
  average(block: number): Float32Array
  /** The whole block, for an update. */
  update(block: number): BlockMemory
  /** Follows `update`, when a thread has been told to update the block, or it has been updated. */
  updated(block: number): void
  /** Replaces the contents of a block. */
  fill(block: number, write: (memory: BlockMemory) => void): void
  close(): void
}

/** All blocks in memory. */
export class MemoryBlocks implements BlockStorage {
  readonly waitedMs: number = 0

  constructor(readonly blocks: readonly BlockMemory[]) {}

  get bytes(): number {
    const arrays = this.blocks.flatMap(({ parameters, average, state }) =>
      average === parameters ? [parameters, ...state] : [parameters, average, ...state]
    )
    return arrays.reduce((sum, { byteLength }) => sum + byteLength, 0)
  }

  begin(): void {}

  parameters(block: number): Float32Array {
    return this.blocks[block].parameters
  }

  average(block: number): Float32Array {
    return this.blocks[block].average
  }

  update(block: number): BlockMemory {
    return this.blocks[block]
  }

  updated(): void {}

  fill(block: number, write: (memory: BlockMemory) => void): void {
    write(this.blocks[block])
  }

  close(): void {}
}

/**
 * Updates one layer in place.
 * @param gradient sum over the minibatch
 * @returns whether the gradient was finite; if not, nothing was changed
 */
export function stepBlock(
  { parameters, average, state }: BlockMemory,
  gradient: Float32Array,
  rule: UpdateRule,
  averaging: WeightedAveraging,
  count: number,
  updates: number
): boolean {
  if (!areFinite(gradient)) return false
  const current = { parameters: [parameters], state }
  if (rule.stepInPlace !== undefined) rule.stepInPlace(current, [gradient], count, updates)
  else {
    const next = rule.step(current, [gradient], count, updates)
    parameters.set(next.parameters[0])
    for (const [i, block] of state.entries()) block.set(next.state[i])
  }
  if (average !== parameters) mixInto(average, parameters, averaging.weight(updates))
  return true
}

/** Total bytes of the slots, unless they would be fewer than two and one per server thread. */
const SLOT_BYTES = 2 ** 28

/** Length and number of slots. */
function slotsFor(lengths: readonly number[], threads: number, bytes: number) {
  const longest = lengths.reduce((most, length) => Math.max(most, length), 0)
  const fitting = Math.floor(bytes / Math.max(1, longest * Float32Array.BYTES_PER_ELEMENT))
  return { longest, count: threads === 0 ? 1 : Math.min(lengths.length, Math.max(threads + 1, fitting)) }
}

/**
 * A ring of gradient buffers, each large enough for any layer. Their number is bounded, so that a model of a billion
 * weights does not need the same memory again for gradients.
 */
export class GradientSlots {
  readonly memory: readonly Float32Array[]
  /** The block that last acquired each slot. */
  readonly #owners: (number | undefined)[]
  #next = 0

  /**
   * @param allocate memory for `length` numbers
   * @param bytes limit of all slots, unless they would be too few
   */
  constructor(
    lengths: readonly number[],
    threads: number,
    allocate: (length: number) => Float32Array,
    bytes = SLOT_BYTES
  ) {
    const { longest, count } = slotsFor(lengths, threads, bytes)
    this.memory = Array.from({ length: count }, () => allocate(longest))
    this.#owners = this.memory.map(() => undefined)
  }

  /** Bytes of the slots that the constructor would allocate. */
  static bytes(lengths: readonly number[], threads: number, limit = SLOT_BYTES): number {
    const { longest, count } = slotsFor(lengths, threads, limit)
    return longest * count * Float32Array.BYTES_PER_ELEMENT
  }

  /**
   * The least recently acquired slot.
   * @param wait blocks until the previous owner's gradient was applied
   */
  acquire(block: number, wait: (block: number) => void): number {
    const slot = this.#next
    this.#next = (slot + 1) % this.memory.length
    const previous = this.#owners[slot]
    if (previous !== undefined) wait(previous)
    this.#owners[slot] = block
    return slot
  }
}

/** Smaller arrays are copied in little time, and a memory reserves addresses. */
const LEAST_BYTES = 2 ** 20

interface ServerMemoryOptions {
  /** Bytes of all arrays. */
  readonly bytes: number
  /** Number of arrays, at most. */
  readonly arrays: number
  /** Number of threads that update them. */
  readonly threads: number
  /** Whether several threads use them. */
  readonly isShared: boolean
}

/**
 * The memory of a parameter server's arrays. The kernels of update rules work in it without copies, unless the arrays are small or
 * larger than one memory of WebAssembly can be.
 */
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

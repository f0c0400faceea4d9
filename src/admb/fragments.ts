/**
 * Fragments carry the vectors of a large frame ahead of it, some blocks each. Neither end has to hold a large model as one
 * contiguous buffer, and blocks can leave while others are still being computed. A fragment alone has no effect: its blocks
 * are buffered until the frame that refers to their transfer arrives, which then takes effect as a whole or not at all.
 */
import type { Blocks } from '../learner/types.js'
import { blockBytes, FrameError, Reader, Writer } from './bytes.js'
import { FLAGS, FRAME_VERSION, type Shapes } from './frame.js'

/** Vectors of a frame, by their number in a fragment. */
export const VECTORS = { parameters: 0, average: 1, state: 2, step: 3, sum: 4 } as const
export type Vector = (typeof VECTORS)[keyof typeof VECTORS]

/** Consecutive blocks of one vector. */
export interface Fragment {
  readonly vector: Vector
  /** Index of the first block. */
  readonly first: number
  readonly blocks: Blocks
}

/** Whether these bytes are a fragment rather than a frame. The result is arbitrary for malformed bytes. */
export function isFragment(bytes: Uint8Array): boolean {
  return bytes[1] === FLAGS.fragment
}

/** @param transfer number of the transfer: 1, 2, 3, … per session and direction */
export function encodeFragment(session: number, transfer: number, { vector, first, blocks }: Fragment): Uint8Array {
  let capacity = 64
  for (const { length } of blocks) capacity += blockBytes(length)
  const out = new Writer(capacity)
  out.byte(FRAME_VERSION)
  out.byte(FLAGS.fragment)
  out.uint(session)
  out.uint(transfer)
  out.byte(vector)
  out.uint(first)
  out.uint(blocks.length)
  out.blocks(blocks)
  return out.finish()
}

/** Fragments of the newest transfer of a neighbour: at most one copy of each block. */
export class FragmentBuffer {
  #transfer = 0
  #vectors: Float32Array[][] = []

  /**
   * Stores a fragment unless it belongs to another session or an earlier transfer.
   * @returns whether it was stored
   * @throws FrameError if it is malformed
   */
  receive(bytes: Uint8Array, session: number, shapes: Shapes): boolean {
    const input = new Reader(bytes)
    const version = input.byte()
    if (version !== FRAME_VERSION) throw new FrameError(`frame version ${version}; expected ${FRAME_VERSION}`)
    input.byte()
    const ofSession = input.uint()
    const transfer = input.uint()
    if (transfer < 1) throw new FrameError('transfer number is 0')
    if (ofSession !== session || transfer < this.#transfer) return false
    const vector = input.byte()
    if (vector > VECTORS.sum) throw new FrameError(`unknown vector ${vector}`)
    const layout = vector === VECTORS.state ? shapes.state : shapes.parameters
    const first = input.uint(layout.blocks.length)
    const count = input.uint(layout.blocks.length - first)
    const blocks = input.blocks({ blocks: layout.blocks.slice(first, first + count) })
    input.finish()
    if (transfer > this.#transfer) this.#vectors = []
    this.#transfer = transfer
    this.#vectors[vector] ??= []
    for (const [i, block] of blocks.entries()) this.#vectors[vector][first + i] = block
    return true
  }

  /** The blocks of a vector, `length` in number; undefined unless all of them have arrived. */
  vector(transfer: number, vector: Vector, length: number): Float32Array[] | undefined {
    const blocks = transfer === this.#transfer ? (this.#vectors[vector] ?? []) : []
    for (let i = 0; i < length; i++) if (blocks[i] === undefined) return undefined
    return blocks
  }

  /** Drops the fragments of a transfer whose frame has arrived. */
  release(transfer: number): void {
    if (transfer === this.#transfer) this.#vectors = []
  }
}

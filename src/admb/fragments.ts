/**
 * Vectors that travel ahead of the frame they belong to, in parts of some blocks each, so that neither end ever holds a large
 * model as one run of bytes, and blocks can leave while others are still being computed. A part changes nothing where it
 * arrives: its blocks wait until the frame comes that names their transfer, which then takes effect as a whole, or not at all.
 */
import type { Blocks } from '../learner/types.js'
import { blockBytes, FrameError, Reader, Writer } from './bytes.js'
import { FLAGS, FRAME_VERSION, type Shapes } from './frame.js'

/** Vectors of a frame by the numbers that stand for them in parts. */
export const VECTORS = { parameters: 0, average: 1, state: 2, step: 3, sum: 4 } as const
export type Vector = (typeof VECTORS)[keyof typeof VECTORS]

/** Consecutive blocks of one vector. */
export interface Fragment {
  readonly vector: Vector
  /** Number of the first block. */
  readonly first: number
  readonly blocks: Blocks
}

/** Whether a frame's bytes are those of a part. Makes no promise about bytes that no honest sender writes. */
export function isFragment(bytes: Uint8Array): boolean {
  return bytes[1] === FLAGS.fragment
}

/** @param transfer 1, 2, 3, … in a session and direction */
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

/** What has come ahead of a neighbour's next frame: the parts of its newest transfer, at most one of each block. */
export class FragmentBuffer {
  #transfer = 0
  #vectors: Float32Array[][] = []

  /**
   * Takes a part in, unless it is of another session or an older transfer.
   * @returns whether it was taken in
   * @throws FrameError for what no honest sender writes
   */
  receive(bytes: Uint8Array, session: number, shapes: Shapes): boolean {
    const input = new Reader(bytes)
    const version = input.byte()
    if (version !== FRAME_VERSION) throw new FrameError(`frame version ${version} instead of ${FRAME_VERSION}`)
    input.byte()
    const ofSession = input.uint()
    const transfer = input.uint()
    if (transfer < 1) throw new FrameError('transfers are counted from 1')
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

  /** The vector of that transfer, of that many blocks; undefined unless all of it has come. */
  vector(transfer: number, vector: Vector, length: number): Float32Array[] | undefined {
    const blocks = transfer === this.#transfer ? (this.#vectors[vector] ?? []) : []
    for (let i = 0; i < length; i++) if (blocks[i] === undefined) return undefined
    return blocks
  }

  /** Lets go of that transfer's parts: its frame has come. */
  release(transfer: number): void {
    if (transfer === this.#transfer) this.#vectors = []
  }
}

/**
 * Fragments carry the vectors of a large frame ahead of it, some blocks each. Neither end has to
 * hold a large model as one contiguous buffer, and blocks can leave while others are still being
 * computed. A fragment alone has no effect: its blocks are buffered until the frame that refers to
 * their transfer arrives, which then takes effect as a whole or not at all.
 */
import type { Layout } from '../../learning/types.js'
import type { SumBlock } from '../../numeric/sums.js'
import { createStep, MAX_STEPS, maximumChainBytes, type Shapes, type Step } from '../state/vectors.js'
import { type BlockSource, blockBytes, blockSize, FrameError, type Reader } from './bytes.js'
import { type Traffic, vectorBytes } from './encode.js'
import { FLAGS, type SentFrame } from './frame.js'
import { beginMessage, openMessage } from './messages.js'

/** Vectors of a frame, by their number in a fragment. A chain has the newest step first. */
export const VECTORS = { parameters: 0, average: 1, state: 2, step: 3, sum: 4 } as const
export type Vector = (typeof VECTORS)[keyof typeof VECTORS]

/** Consecutive blocks of one vector. */
export interface Fragment {
  readonly vector: Vector
  /** Index of the first block. */
  readonly first: number
  readonly blocks: readonly BlockSource[]
}

/** Whether the bytes are a fragment, not a frame. The result is arbitrary for malformed bytes. */
export function isFragment(bytes: Uint8Array): boolean {
  return bytes[1] === FLAGS.fragment
}

/** @param transfer number of the transfer: 1, 2, 3, … per session and direction */
function encodeFragment(
  session: number,
  transfer: number,
  { vector, first, blocks }: Fragment,
  traffic: Traffic
): Uint8Array {
  let capacity = 64
  for (const block of blocks) capacity += blockSize(block)
  const out = beginMessage(FLAGS.fragment, session, capacity)
  out.uint(transfer)
  out.byte(vector)
  out.uint(first)
  out.uint(blocks.length)
  out.blocks(blocks, vector < VECTORS.step)
  const bytes = out.finish()
  traffic.count(vector === VECTORS.step ? 'steps' : vector === VECTORS.sum ? 'sums' : 'predictors', bytes.length)
  return bytes
}

function layoutOf(vector: number, { parameters, average, state }: Shapes): Layout {
  if (vector === VECTORS.average) return average
  return vector === VECTORS.state ? state : parameters
}

/** Fragments of the newest transfer of a neighbour: at most one copy of each block. */
export class FragmentBuffer {
  #transfer = 0
  #vectors: SumBlock[][] = []
  /** Parts of steps, of one block each. */
  #steps: Step[] = []

  /**
   * Stores a fragment unless it belongs to another session or an earlier transfer.
   * @returns whether it was stored
   * @throws FrameError if it is malformed
   */
  receiveFragment(bytes: Uint8Array, session: number, shapes: Shapes): boolean {
    const input = openMessage(bytes)
    const ofSession = input.uint()
    const transfer = input.uint()
    if (transfer < 1) throw new FrameError('transfer number is 0')
    if (ofSession !== session || transfer < this.#transfer) return false
    const vector = input.byte()
    if (vector > VECTORS.sum) throw new FrameError(`unknown vector ${vector}`)
    const { blocks: layouts } = layoutOf(vector, shapes)
    const end = layouts.length * (vector === VECTORS.step ? MAX_STEPS : 1)
    const first = input.uint(end)
    const count = input.uint(end - first)
    if (vector === VECTORS.step) this.#receiveSteps(input, transfer, first, count, shapes)
    else {
      const blocks = input.sum({ blocks: layouts.slice(first, first + count) })
      input.finish()
      this.#start(transfer)
      this.#vectors[vector] ??= []
      for (const [i, block] of blocks.entries()) this.#vectors[vector][first + i] = block
    }
    return true
  }

  #receiveSteps(input: Reader, transfer: number, first: number, count: number, shapes: Shapes): void {
    const { blocks: layouts } = shapes.parameters
    const received: Step[] = []
    for (let i = first; i < first + count; i++)
      received.push(createStep(input.sum({ blocks: [layouts[i % layouts.length]] }), shapes))
    input.finish()
    const steps = transfer > this.#transfer ? [] : this.#steps.slice()
    for (const [i, part] of received.entries()) steps[first + i] = part
    let bytes = 0
    // Parts that have not arrived are skipped.
    steps.forEach(part => {
      bytes += part.bytes
    })
    if (bytes > maximumFragmentBytes(shapes)) throw new FrameError('fragments of steps are larger than the predictor')
    this.#start(transfer)
    this.#steps = steps
  }

  /** Fragments of another transfer replace those of the previous one. */
  #start(transfer: number): void {
    if (transfer > this.#transfer) this.#clear()
    this.#transfer = transfer
  }

  #clear(): void {
    this.#vectors = []
    this.#steps = []
  }

  /** The blocks of a vector, `length` in number; undefined unless all of them have arrived. */
  vector(transfer: number, vector: Vector, length: number): SumBlock[] | undefined {
    return complete(transfer === this.#transfer ? (this.#vectors[vector] ?? []) : [], length)
  }

  /** The `length` blocks of a chain of steps; undefined unless all of them have arrived. */
  steps(transfer: number, length: number): Step[] | undefined {
    return complete(transfer === this.#transfer ? this.#steps : [], length)
  }

  /** Drops the fragments of a transfer whose frame has arrived. */
  release(transfer: number): void {
    if (transfer === this.#transfer) this.#clear()
  }
}

/** Maximum size of a chain's fragments: that of the predictor, or of one step that is larger. */
function maximumFragmentBytes(shapes: Shapes): number {
  let bytes = maximumChainBytes(shapes)
  for (const { length } of shapes.parameters.blocks) bytes += blockBytes(length)
  return bytes
}

/** The blocks, if all `length` are there. */
function complete<T>(blocks: T[], length: number): T[] | undefined {
  for (let i = 0; i < length; i++) if (blocks[i] === undefined) return undefined
  return blocks
}

/** A frame that is sent in fragments: its vectors, encoded when they can leave, then the frame. */
export class Transfer {
  readonly #session: number
  readonly #number: number
  readonly #fragments: Fragment[]
  readonly #frame: Uint8Array

  /**
   * @param fragments fragments that have not been sent
   * @param frame the encoded frame, without its vectors
   */
  constructor(session: number, number: number, fragments: readonly Fragment[], frame: Uint8Array) {
    this.#session = session
    this.#number = number
    this.#fragments = [...fragments]
    this.#frame = frame
  }

  /** Whether only the frame itself is left. */
  get isFrameNext(): boolean {
    return this.#fragments.length === 0
  }

  /** The next fragment, and finally the frame. */
  next(traffic: Traffic): Uint8Array {
    const fragment = this.#fragments.shift()
    return fragment === undefined ? this.#frame : encodeFragment(this.#session, this.#number, fragment, traffic)
  }
}

const WHOLE: readonly Fragment[] = []

/** Splits a frame's vectors into fragments of about `bytes` bytes; empty if it is not needed. */
export function fragmentsOf(frame: SentFrame, shapes: Shapes, bytes: number): readonly Fragment[] {
  if (vectorBytes(frame, shapes) <= bytes) return WHOLE
  const { content, sum } = frame
  const vectors: [Vector, readonly BlockSource[]][] = []
  if (content?.kind === 'whole') {
    const { parameters, average, state } = content
    vectors.push([VECTORS.parameters, parameters], [VECTORS.average, average], [VECTORS.state, state])
  } else if (content !== undefined) vectors.push([VECTORS.step, content.steps.flatMap(step => step.blocks)])
  if (sum !== undefined) vectors.push([VECTORS.sum, sum.sum])
  const fragments = vectors.flatMap(([vector, blocks]) => split(vector, blocks, bytes))
  return fragments.length > 1 ? fragments : WHOLE
}

function split(vector: Vector, blocks: readonly BlockSource[], bytes: number): Fragment[] {
  const fragments: Fragment[] = []
  for (let first = 0, end = 0; first < blocks.length; first = end) {
    let size = blockSize(blocks[end++])
    while (end < blocks.length && size + blockSize(blocks[end]) <= bytes) size += blockSize(blocks[end++])
    fragments.push({ vector, first, blocks: blocks.slice(first, end) })
  }
  return fragments
}

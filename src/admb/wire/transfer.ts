/** A frame that is sent in fragments: first its vectors, each fragment encoded when it can leave, then the frame itself. */

import type { Shapes } from '../state/vectors.js'
import { type BlockSource, blockSize } from './bytes.js'
import { vectorBytes } from './encode.js'
import { encodeFragment, type Fragment, VECTORS, type Vector } from './fragments.js'
import type { SentFrame } from './frame.js'
import type { Traffic } from './traffic.js'

export class Transfer {
  readonly #session: number
  readonly #number: number
  readonly #fragments: Fragment[]
  readonly #frame: Uint8Array

  /**
   * @param fragments fragments that have not been sent
   * @param frame the encoded frame, without its vectors
   */
  constructor(session: number, number: number, pieces: readonly Fragment[], frame: Uint8Array) {
    this.#session = session
    this.#number = number
    this.#fragments = [...pieces]
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

/** Splits a frame's vectors into fragments of about `bytes` bytes, at least one block each. Empty if splitting is not needed. */
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

/** What a node with a budget of bytes had not sent, as bytes for its journal. */
import type { Layout, Unsent } from '../../learning/types.js'
import type { CompactBlock } from '../../numeric/sums.js'
import { blockBytes, Reader, Writer } from './bytes.js'

/** What a node had not sent, for its next run. */
export interface KeptUnsent extends Unsent {
  /** Number of the last segment whose gradients are in `sum`, or were sent. */
  readonly segment: number
  /** Inputs in segments up to this one whose gradients are neither, as intervals [first, end, first, end, …]. */
  readonly owed: readonly number[]
  /** Sums of the last segments that have one. */
  readonly sums: readonly KeptSum[]
}

interface KeptSum {
  /** Number of the segment. */
  readonly number: number
  /** Number of the epoch whose batch has used it, 0 while one can use it, and −1 if it has returned to the residual. */
  readonly place: number
  readonly sum: readonly CompactBlock[]
}

const COUNT: Layout = { blocks: [{ name: 'count', length: 1 }] }

/** Maximum size of a block, in bytes. */
function sizeOf(block: CompactBlock): number {
  return block instanceof Float32Array ? blockBytes(block.length) : 16 + 9 * block.indices.length
}

export function encodeUnsent({ sum, count, segment, owed, sums }: KeptUnsent): Uint8Array {
  const blocks = [...sum, ...sums.flatMap(({ sum }) => sum)]
  const out = new Writer(blocks.reduce((bytes, block) => bytes + sizeOf(block), 64 + 8 * owed.length))
  out.blocks([Float32Array.of(count), ...sum])
  out.uint(segment)
  out.uint(owed.length)
  for (const number of owed) out.uint(number)
  out.uint(sums.length)
  for (const { number, place, sum: blocks } of sums) {
    out.uint(number)
    out.uint(place + 1)
    for (const [b, block] of blocks.entries()) out.compactBlock(block, sum[b].length)
  }
  return out.finish()
}

/** @throws FrameError */
export function decodeUnsent(bytes: Uint8Array, layout: Layout): KeptUnsent {
  const reader = new Reader(bytes)
  const [[count]] = reader.blocks(COUNT)
  const [sum, segment] = [reader.blocks(layout), reader.uint()]
  const owed = Array.from({ length: reader.uint() }, () => reader.uint())
  const sums = Array.from({ length: reader.uint() }, () => {
    const [number, place] = [reader.uint(), reader.uint() - 1]
    const blocks = reader.sum(layout)
    for (const block of blocks) block.makeSparse()
    return { number, place, sum: blocks.map(block => block.compactCopy()) }
  })
  return { sum, count, segment, owed, sums }
}

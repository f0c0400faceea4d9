/** What a node with a budget of bytes had not sent, as bytes for its journal. */
import type { Layout, Unsent } from '../../learning/types.js'
import { type CompactBlock, SumBlock } from '../../numeric/sums.js'
import { blockBytes, Reader, Writer } from './bytes.js'

/** What a node had not sent, for its next run. */
export interface KeptUnsent extends Unsent {
  /** Number of the last segment whose gradients are in `sum`, or were sent. */
  readonly segment: number
  /** Sums of unused segments by number, of those that are not 0. */
  readonly sums: readonly (readonly [segment: number, sum: readonly CompactBlock[]])[]
}

const COUNT: Layout = { blocks: [{ name: 'count', length: 1 }] }

export function encodeUnsent({ sum, count, segment, sums }: KeptUnsent): Uint8Array {
  const out = new Writer(sum.reduce((bytes, { length }) => bytes + blockBytes(length), 64))
  out.blocks([Float32Array.of(count), ...sum])
  out.uint(segment)
  out.uint(sums.length)
  for (const [number, blocks] of sums) {
    out.uint(number)
    for (const [b, block] of blocks.entries()) {
      const whole = SumBlock.zeros(sum[b].length)
      whole.addBlock(block)
      out.blocks([whole])
    }
  }
  return out.finish()
}

/** @throws FrameError */
export function decodeUnsent(bytes: Uint8Array, layout: Layout): KeptUnsent {
  const reader = new Reader(bytes)
  const [[count]] = reader.blocks(COUNT)
  const [sum, segment] = [reader.blocks(layout), reader.uint()]
  const sums = Array.from({ length: reader.uint() }, () => {
    const number = reader.uint()
    const blocks = reader.sum(layout)
    for (const block of blocks) block.makeSparse()
    return [number, blocks.map(block => block.compactCopy())] as const
  })
  return { sum, count, segment, sums }
}

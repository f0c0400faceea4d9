/** Content digests of predictors: equal parameters, average and state have equal digests on every machine. */
import { createHash } from 'node:crypto'
import type { Blocks, Digest } from './types.js'

/** 128 bits. */
export const HEX_DIGITS = 32
const hostIsLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1

function littleEndian(block: Float32Array): Uint8Array {
  const bytes = new Uint8Array(block.buffer, block.byteOffset, block.byteLength)
  return hostIsLittleEndian ? bytes : Buffer.from(bytes).swap32()
}

/**
 * SHA-256 truncated to 128 bits, in lower-case hexadecimal, over: the number of `Blocks`; for each of them the number of its
 * blocks; for each block its length and the bits of its elements. Numbers are unsigned 32-bit, and everything is little endian.
 */
export const digest: Digest = (blocks: readonly Blocks[]): string => {
  const hash = createHash('sha256')
  const number = (value: number): void => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(value)
    hash.update(bytes)
  }
  number(blocks.length)
  for (const group of blocks) {
    number(group.length)
    for (const block of group) {
      number(block.length)
      hash.update(littleEndian(block))
    }
  }
  return hash.digest('hex').slice(0, HEX_DIGITS)
}

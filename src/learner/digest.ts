/** Content digests of predictors: equal parameters, average and state have equal digests on every machine. */
import { createSha256 } from '#platform'
import type { Blocks, Digest } from './types.js'

/** 128 bits. */
export const HEX_DIGITS = 32
const hostIsLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1

function littleEndian(block: Float32Array): Uint8Array {
  if (hostIsLittleEndian) return new Uint8Array(block.buffer, block.byteOffset, block.byteLength)
  const view = new DataView(new ArrayBuffer(block.byteLength))
  for (const [i, value] of block.entries()) view.setFloat32(4 * i, value, true)
  return new Uint8Array(view.buffer)
}

/**
 * SHA-256 truncated to 128 bits, in lower-case hexadecimal, over: the number of `Blocks`; for each of them the number of its
 * blocks; for each block its length and the bits of its elements. Numbers are unsigned 32-bit, and everything is little endian.
 */
export const digest: Digest = (blocks: readonly Blocks[]): string => {
  const hash = createSha256()
  const number = (value: number): void => {
    hash.update(Uint8Array.of(value, value >>> 8, value >>> 16, value >>> 24))
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

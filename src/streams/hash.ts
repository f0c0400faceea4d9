/**
 * MurmurHash3 (A. Appleby, x86 32-bit variant, public domain algorithm) over bytes. Vowpal Wabbit uses the same feature hash, so
 * names have the same 32 bits in both programs.
 */

/** Default number of hashed features, as a power of two. */
export const DEFAULT_HASH_BITS = 18

/** @returns the hash of `bytes[from, to)` as an unsigned 32-bit integer */
export function murmur3(bytes: Uint8Array, from: number, to: number, seed: number): number {
  let hash = seed | 0
  const length = to - from
  const tail = from + (length & ~3)
  for (let i = from; i < tail; i += 4) {
    hash ^= scrambled(bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24))
    hash = (hash << 13) | (hash >>> 19)
    hash = (Math.imul(hash, 5) + 0xe6546b64) | 0
  }
  let rest = 0
  for (let i = to - 1; i >= tail; i--) rest = (rest << 8) | bytes[i]
  hash ^= scrambled(rest) ^ length
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

function scrambled(block: number): number {
  const mixed = Math.imul(block, 0xcc9e2d51)
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593)
}

/**
 * Numbers with few bits. Predictors whose numbers have 10 bits after the leading one take less than half of the bytes. The rounding is
 * stochastic, so that many small changes add up to what they are without it, but follows from the numbers and the number of the
 * update: all who compute a predictor compute the same bits.
 */

/** Bits of the fraction of a float32 that are dropped. */
const DROPPED = 13
const LOW = (1 << DROPPED) - 1

/**
 * Rounds the elements that an update has changed up or down, in place, with the probabilities that keep their expectation.
 * @param before the block before the update
 * @param updates number of updates before
 */
export function roundChanged(block: Float32Array, before: Float32Array, updates: number): void {
  const bits = new Int32Array(block.buffer, block.byteOffset, block.length)
  const salt = Math.imul(updates + 1, 0x9e3779b1)
  for (let i = 0; i < bits.length; i++) {
    const exact = bits[i]
    if ((exact & LOW) === 0 || block[i] === before[i]) continue
    bits[i] = (exact + (mixed(exact ^ salt) >>> (32 - DROPPED))) & ~LOW
  }
}

/** The finaliser of MurmurHash3, shortened. */
function mixed(key: number): number {
  const first = Math.imul(key ^ (key >>> 16), 0x85ebca6b)
  return Math.imul(first ^ (first >>> 13), 0xc2b2ae35)
}

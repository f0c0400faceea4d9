/**
 * Checks and roundings of numbers, which are the same on every machine. Numbers with few bits. Predictors whose numbers have 10 bits after the leading one take less than half of the bytes. The
 * rounding is stochastic, so that many small changes add up to what they are without it, but follows from the numbers and the
 * number of the update: all who compute a predictor compute the same bits.
 */

/** Whether all elements are finite. */
export function isFiniteBlock(block: Float32Array): boolean {
  // x·0 is 0 or −0 for a finite x and NaN otherwise, so sums check the whole block without a branch. Four of them do not wait
  // for each other.
  let [a, b, c, d] = [0, 0, 0, 0]
  const whole = block.length - (block.length % 4)
  for (let i = 0; i < whole; i += 4) {
    a += block[i] * 0
    b += block[i + 1] * 0
    c += block[i + 2] * 0
    d += block[i + 3] * 0
  }
  for (let i = whole; i < block.length; i++) a += block[i] * 0
  return a + b + c + d === 0
}

/** The mean, summed in the order of the numbers in double precision. NaN if there are none. */
export function meanOf(values: ArrayLike<number>): number {
  let sum = 0
  for (let i = 0; i < values.length; i++) sum += values[i]
  return sum / values.length
}

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

/**
 * The nearest power of two to the deviation, and the mean in units of half of it. Equal numbers have deviation 1.
 * @returns undefined without finite numbers
 */
export function roundedScale(
  numbers: Iterable<number>
): { readonly mean: number; readonly deviation: number } | undefined {
  const known = [...numbers].filter(Number.isFinite)
  if (known.length === 0) return undefined
  const mean = known.reduce((sum, number) => sum + number, 0) / known.length
  const variance = known.reduce((sum, number) => sum + (number - mean) ** 2, 0) / known.length
  if (variance === 0) return { mean, deviation: 1 }
  const deviation = 2 ** Math.round(Math.log2(variance) / 2)
  return { mean: (deviation / 2) * Math.round((2 * mean) / deviation), deviation }
}

/** Checks and roundings of numbers, which are the same on every machine. */

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

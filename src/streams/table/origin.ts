/** What is subtracted from numbers that differ little for their size, before they become float32 numbers. */

/** Mean in deviations from which a float32 number shows too little of a difference. */
const FAR = 1024

/**
 * A short number near the mean, if the numbers are far from `usual` for their deviation.
 * @param usual what is subtracted otherwise
 * @returns undefined if that suffices
 */
export function originOf(numbers: readonly number[], usual = 0): number | undefined {
  if (numbers.length === 0) return undefined
  const mean = numbers.reduce((sum, number) => sum + (number - usual), 0) / numbers.length
  const squares = numbers.reduce((sum, number) => sum + (number - usual - mean) ** 2, 0)
  const deviation = Math.sqrt(squares / numbers.length)
  if (Math.abs(mean) < FAR || Math.abs(mean) < FAR * deviation) return undefined
  if (deviation === 0) return usual + mean
  // A multiple of a power of two has few digits.
  const step = 2 ** Math.floor(Math.log2(16 * deviation))
  return usual + step * Math.round(mean / step)
}

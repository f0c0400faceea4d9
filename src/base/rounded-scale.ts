/** A scale of numbers that is estimated alike from different samples. */

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

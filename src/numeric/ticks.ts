/** Ticks of the axes of plots, and their labels. */

/** Powers of ten of the prefixes of units. */
const PREFIXES = [
  [12, 'T'],
  [9, 'G'],
  [6, 'M'],
  [3, 'k']
] as const

/** Labels of a linear axis, as short as distinct labels can be: `0.35`, `60k`, `1.2M`. @param ticks equally spaced */
export function tickLabels(ticks: readonly number[]): string[] {
  const largest = Math.max(...ticks.map(Math.abs))
  const step = Math.abs((ticks[1] ?? ticks[0] ?? 0) - (ticks.length > 1 ? ticks[0] : 0)) || 1
  const [power, prefix] = PREFIXES.find(([exponent]) => largest >= 10 ** Math.max(4, exponent)) ?? [0, '']
  const digits = Math.max(0, -Math.floor(Math.log10(step) - power + 1e-9))
  return ticks.map(tick => {
    if (tick === 0) return '0'
    return digits > 6 ? tick.toExponential(1) : `${(tick / 10 ** power).toFixed(digits)}${prefix}`
  })
}

/** About six ticks of a linear axis: multiples of a round number from `min` to `max`. */
export function linearTicks(min: number, max: number): number[] {
  if (!(max > min)) return [min]
  const decade = 10 ** Math.floor(Math.log10((max - min) / 6))
  const step = decade * ([1, 2, 5].find(factor => (max - min) / (factor * decade) <= 7) ?? 10)
  const first = Math.ceil(min / step - 1e-9)
  return Array.from({ length: Math.floor(max / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step)
}

/** First digits of the labelled ticks, by the width of a decade in pixels that they need. */
const LABELLED: readonly (readonly [width: number, digits: string])[] = [
  [420, '123457'],
  [150, '125'],
  [0, '1']
]

/** Ticks of a logarithmic axis: the multiples of powers of ten from `min` to `max`, both above 0. */
export function logTicks(min: number, max: number): number[] {
  const ticks: number[] = []
  for (let decade = 10 ** Math.floor(Math.log10(min)); decade <= max; decade *= 10) {
    for (let digit = 1; digit < 10; digit++) {
      if (digit * decade >= min && digit * decade <= max) ticks.push(digit * decade)
    }
  }
  return ticks
}

/**
 * Labels at the decades, and between them if they fit. Other labels are empty.
 * @param width width of the axis, in pixels
 */
export function logLabels(ticks: readonly number[], width: number, format: (tick: number) => string): string[] {
  const decades = Math.log10((ticks.at(-1) ?? 1) / (ticks[0] ?? 1)) || 1
  const [, digits] = LABELLED.find(([least]) => width / decades > least) ?? [0, '1']
  return ticks.map(tick => (digits.includes(tick.toExponential()[0]) ? format(tick) : ''))
}

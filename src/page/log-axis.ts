/** Ticks of a logarithmic axis, and their labels. */
import { formatCount } from './format.js'

/** Room that a decade needs for labels at 1, 2 and 5, in pixels. */
const ROOMY_DECADE = 150

/** The multiples of powers of ten from `min` to `max`, both above 0. */
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
 * Labels at the decades, and between them where there is room; empty texts elsewhere.
 * @param width of the axis, in pixels
 */
export function logLabels(ticks: readonly number[], width: number): string[] {
  const decades = Math.log10((ticks.at(-1) ?? 1) / (ticks[0] ?? 1)) || 1
  const digits = width / decades > ROOMY_DECADE ? ['1', '2', '5'] : ['1']
  return ticks.map(tick => (digits.includes(tick.toExponential()[0]) ? formatCount(tick) : ''))
}

/** Data and axes of the plots: a common column of x values, and for each line its y values, null where it has no point. */
import type { CurvePoint, Reference } from '../view/types.js'
import { formatCount } from './format.js'

export interface PlotData {
  readonly x: readonly number[]
  /** In the order of the given lines. */
  readonly ys: readonly (readonly (number | null)[])[]
}

export interface Line {
  readonly points: readonly (readonly [x: number, y: number])[]
}

/** Aligns lines with different, ascending x values to one column of x values. */
export function aligned(lines: readonly Line[]): PlotData {
  const x = [...new Set(lines.flatMap(({ points }) => points.map(point => point[0])))].sort((a, b) => a - b)
  const index = new Map(x.map((value, i) => [value, i]))
  const ys = lines.map(({ points }) => {
    const column = new Array<number | null>(x.length).fill(null)
    for (const [value, y] of points) column[index.get(value) as number] = y
    return column
  })
  return { x, ys }
}

/** The loss over the last inputs. @param start time of x = 0 in ms; undefined against inputs */
export function recentLine(points: readonly CurvePoint[], start: number | undefined): Line {
  return {
    points: points.flatMap(([inputs, at, , recent]) => {
      const x = start === undefined ? inputs : Math.round((at - start) / 100) / 10
      return recent === undefined ? [] : [[x, recent] as const]
    })
  }
}

export function againstInputs(points: readonly CurvePoint[]): Line {
  return { points: points.map(([inputs, , loss]) => [inputs, loss] as const) }
}

/** The x values are seconds. @param start time of x = 0, in ms */
export function againstTime(points: readonly CurvePoint[], start: number): Line {
  return { points: points.map(([, at, loss]) => [Math.round((at - start) / 100) / 10, loss] as const) }
}

/** A reference has no times, so its final loss is drawn as a horizontal line. */
export function level({ points }: Reference, from: number, to: number): Line {
  const last = points[points.length - 1]
  return { points: last === undefined ? [] : [[from, last[1]] as const, [to, last[1]] as const] }
}

/** Width of a decade in pixels above which 1, 2 and 5 are labelled. */
const WIDE_DECADE = 150

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
export function logLabels(ticks: readonly number[], width: number): string[] {
  const decades = Math.log10((ticks.at(-1) ?? 1) / (ticks[0] ?? 1)) || 1
  const digits = width / decades > WIDE_DECADE ? ['1', '2', '5'] : ['1']
  return ticks.map(tick => (digits.includes(tick.toExponential()[0]) ? formatCount(tick) : ''))
}

/** Curves as the plots take them: one column of x values, and for each line its y values, null where it has none. */
import type { CurvePoint, Reference } from '../view/types.js'

export interface PlotData {
  readonly x: readonly number[]
  /** In the order of the lines given. */
  readonly ys: readonly (readonly (number | null)[])[]
}

export interface Line {
  readonly points: readonly (readonly [x: number, y: number])[]
}

/** Brings lines with x values of their own, which rise, onto common ones. */
export function aligned(lines: readonly Line[]): PlotData {
  const x = [...new Set(lines.flatMap(({ points }) => points.map(point => point[0])))].sort((a, b) => a - b)
  const index = new Map(x.map((value, place) => [value, place]))
  const ys = lines.map(({ points }) => {
    const column = new Array<number | null>(x.length).fill(null)
    for (const [value, y] of points) column[index.get(value) as number] = y
    return column
  })
  return { x, ys }
}

export function againstInputs(points: readonly CurvePoint[]): Line {
  return { points: points.map(([inputs, , loss]) => [inputs, loss] as const) }
}

/** @param start ms of the time that is 0; seconds since then are the x values */
export function againstTime(points: readonly CurvePoint[], start: number): Line {
  return { points: points.map(([, at, loss]) => [Math.round((at - start) / 100) / 10, loss] as const) }
}

/** A reference has no time of its own: where it came to in the end is drawn all along. */
export function level({ points }: Reference, from: number, to: number): Line {
  const last = points[points.length - 1]
  return { points: last === undefined ? [] : [[from, last[1]] as const, [to, last[1]] as const] }
}

/** Data and axes of the plots: a common column of x values, and for each line its y values, null where it has no point. */
import type { Absence, CurvePoint, Reference } from '../view/types.js'

interface PlotData {
  readonly x: readonly number[]
  /** In the order of the given lines: undefined where a line has no point of its own, null in its gaps. */
  readonly ys: readonly (readonly (number | null | undefined)[])[]
}

export interface Line {
  /** A point without y is a gap. */
  readonly points: readonly (readonly [x: number, y: number | null])[]
}

/** Aligns lines with different, ascending x values to one column of x values. */
export function aligned(lines: readonly Line[]): PlotData {
  const x = [...new Set(lines.flatMap(({ points }) => points.map(point => point[0])))].sort((a, b) => a - b)
  const index = new Map(x.map((value, i) => [value, i]))
  const ys = lines.map(({ points }) => {
    const column = new Array<number | null | undefined>(x.length).fill(undefined)
    for (const [value, y] of points) column[index.get(value) as number] = y
    // A gap reaches to the points beside it, over the points of other lines.
    for (const [value, y] of points) if (y === null) widen(column, index.get(value) as number)
    return column
  })
  return { x, ys }
}

function widen(column: (number | null | undefined)[], gap: number): void {
  for (const step of [-1, 1])
    for (let at = gap + step; column[at] === undefined && at >= 0 && at < column.length; at += step) column[at] = null
}

/** What the x axis shows: the inputs of a peer, or seconds since a time, in ms. */
type XOf = (point: CurvePoint) => number

export const inputsOf: XOf = ([inputs]) => inputs

export const secondsSince =
  (start: number): XOf =>
  ([, at]) =>
    Math.round((at - start) / 100) / 10

/**
 * The line of a curve, with a gap wherever the peer was away.
 * @param isRecent whether it shows the loss over the last inputs, and not that of all inputs so far
 */
export function curveLine(
  { points, absences }: { readonly points: readonly CurvePoint[]; readonly absences: readonly Absence[] },
  xOf: XOf,
  isRecent = false
): Line {
  const known = isRecent ? points.filter(([, , , recent]) => recent !== undefined) : points
  const after = new Set(absences.map(([, until]) => known.findIndex(([, at]) => at >= until)))
  const line: [number, number | null][] = []
  for (const [place, point] of known.entries()) {
    const x = xOf(point)
    const last = line.at(-1)
    if (last && after.has(place) && x > last[0]) line.push([(last[0] + x) / 2, null])
    line.push([x, (isRecent ? point[3] : point[2]) as number])
  }
  return { points: line }
}

/** A reference has no times, so its final loss is drawn as a horizontal line. */
export function level({ points }: Reference, from: number, to: number): Line {
  const last = points[points.length - 1]
  return { points: last === undefined ? [] : [[from, last[1]] as const, [to, last[1]] as const] }
}

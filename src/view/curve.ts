/**
 * Progressive loss over time in a bounded number of points. Plots have a logarithmic axis of inputs or a linear axis of time, so
 * the point to drop is the one that matters least on both.
 */
import type { NetworkStatus } from './status.js'
import type { Absence, CurvePoint } from './types.js'

/** Maximum number of points. */
export const MAX_POINTS = 160
/** Maximum number of times in which the peer was away: the last ones. */
const MAX_ABSENCES = 20

export class Curve {
  #points: CurvePoint[] = []
  #absences: readonly Absence[] = []

  get points(): readonly CurvePoint[] {
    return this.#points
  }

  /** Times for which the peer was away, oldest first. */
  get absences(): readonly Absence[] {
    return this.#absences
  }

  /** Records that the peer was away between two statuses. */
  away(from: number, until: number): void {
    this.#absences = [...this.#absences, [from, until] as const].slice(-MAX_ABSENCES)
  }

  /**
   * If the inputs decrease (after a crash, or a restart without state), later points are dropped.
   * @param recent loss over the last inputs
   * @param ended whether the stream has ended: then time passes without points
   */
  add(inputs: number, at: number, loss: number, recent?: number, ended = false): void {
    const last = this.#points.at(-1)
    if (ended && last && inputs === last[0]) return
    if (last && inputs < last[0]) this.#points = this.#points.filter(point => point[0] < inputs)
    // Without new inputs, only the time of the last point changes.
    if (last && inputs === last[0] && this.#points.at(-2)?.[0] === inputs) this.#points.pop()
    if (inputs > 0) this.#points.push(recent === undefined ? [inputs, at, loss] : [inputs, at, loss, recent])
    if (this.#points.length > MAX_POINTS) this.#points.splice(leastSignificant(this.#points), 1)
  }
}

type Run = Pick<NetworkStatus, 'incarnation' | 'started'>

/** Whether a peer was silent or restarted between two statuses. */
export function wasAway(before: Run & { readonly alive: boolean }, now: Run): boolean {
  return !before.alive || before.incarnation !== now.incarnation || before.started !== now.started
}

/** A curve that continues from existing points. */
export function restoredCurve(points: readonly CurvePoint[], absences: readonly Absence[] = []): Curve {
  const curve = new Curve()
  for (const [from, until] of absences) curve.away(from, until)
  for (const [inputs, at, loss, recent] of points) curve.add(inputs, at, loss, recent)
  return curve
}

/** Index of the inner point whose neighbours are closest to each other, by the larger relative distance of the two axes. */
function leastSignificant(points: readonly CurvePoint[]): number {
  const [first, last] = [points[0], points[points.length - 1]]
  const inputs = Math.log(last[0] / first[0]) || 1
  const time = last[1] - first[1] || 1
  let least = 1
  let smallest = Number.POSITIVE_INFINITY
  for (let i = 1; i < points.length - 1; i++) {
    const [before, after] = [points[i - 1], points[i + 1]]
    const gap = Math.max(Math.log(after[0] / before[0]) / inputs, (after[1] - before[1]) / time)
    if (gap < smallest) {
      smallest = gap
      least = i
    }
  }
  return least
}

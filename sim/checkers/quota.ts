/**
 * With a quota, the sum of a single contributor that a node holds has no more gradients than the contributor may have saved up before the
 * last change of predictor, and contributed since. What the node's own updates have used of such sums is no more than that since its start.
 */
import { type PredictorId, type Quota, sameId } from '../../src/admb/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant, PredictorChange } from './invariant.js'

/** Gradients by the only contributor of a sum. */
type Uses = ReadonlyMap<string, number>

interface Tally {
  /** By edge, the contributors to the sum that is held, and its gradients. */
  readonly held: Map<number, { readonly origins: readonly string[]; readonly count: number }>
  readonly used: Map<string, number>
  /** The last own update, until another predictor follows it. */
  last: { readonly parent: PredictorId; readonly uses: Uses } | undefined
  switchedAt: number
}

export class Quotas implements Invariant {
  readonly #quota: Quota
  readonly #tallies = new WeakMap<CheckedNode, Tally>()

  constructor(quota: Quota) {
    this.#quota = quota
  }

  started(checked: CheckedNode): void {
    this.#tallies.set(checked, { held: new Map(), used: new Map(), last: undefined, switchedAt: checked.period })
  }

  predictorChanged(checked: CheckedNode, { cause, parent }: PredictorChange): void {
    const tally = this.#tallyOf(checked)
    if (cause === 'updated') {
      const uses = usesOf(tally, checked.origin)
      tally.last = { parent: parent.id, uses }
      for (const [origin, count] of uses) tally.used.set(origin, (tally.used.get(origin) ?? 0) + count)
    } else {
      const before = checked.node.lineage[0]?.parent
      // Another node's batch has replaced that of the own update.
      if (tally.last && before && sameId(tally.last.parent, before))
        for (const [origin, count] of tally.last.uses) tally.used.set(origin, (tally.used.get(origin) ?? 0) - count)
      tally.last = undefined
    }
    tally.held.clear()
    tally.switchedAt = checked.period
    for (const [origin, count] of tally.used) this.#check(checked, origin, count, checked.period, 'has used')
  }

  frameReceived(checked: CheckedNode, edge: number): void {
    const { held, switchedAt } = this.#tallyOf(checked)
    const sum = checked.neighbourSum(edge)
    if (sum === undefined) {
      held.delete(edge)
      return
    }
    const origins = sum.contributors.map(({ origin }) => origin)
    held.set(edge, { origins, count: sum.count })
    if (origins.length === 1) this.#check(checked, origins[0], sum.count, checked.period - switchedAt, 'holds')
  }

  disconnected(checked: CheckedNode, edge: number): void {
    this.#tallyOf(checked).held.delete(edge)
  }

  #check({ origin: self }: CheckedNode, origin: string, count: number, periods: number, verb: string): void {
    const { perPeriod, burst } = this.#quota
    const most = burst + perPeriod * periods
    if (count > most + 1e-6)
      throw new Violation(
        'quota',
        `${self} ${verb} ${count} gradients of ${origin}, which may have contributed ${most}`
      )
  }

  #tallyOf(checked: CheckedNode): Tally {
    if (!this.#tallies.has(checked)) this.started(checked)
    return this.#tallies.get(checked) as Tally
  }
}

/** What an update uses of sums with one contributor, if it uses all sums, as they have no contributor in common. */
function usesOf({ held }: Tally, self: string): Uses {
  const origins = [...held.values()].flatMap(sum => sum.origins)
  if (new Set([...origins, self]).size <= origins.length) return new Map()
  return new Map([...held.values()].flatMap(sum => (sum.origins.length === 1 ? [[sum.origins[0], sum.count]] : [])))
}

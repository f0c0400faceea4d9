/** Totals of peers as figures for the page. */
import { type Aggregate, figuresOf } from './aggregate.js'
import type { NetworkTotals } from './types.js'

/** @param numbers numbers of groups by the digests of the predictors that their rows held; other groups get further numbers */
export function describeTotals(totals: Aggregate, numbers: ReadonlyMap<string, number>): NetworkTotals {
  const { peers, ended, problems, drifting, adopted, discarded, skipped, received, losses, rates } = totals
  let last = Math.max(-1, ...numbers.values())
  const groups = totals.groups.map(({ peers, updates, held }) => {
    const digest = held.map(([, one]) => one).find(one => numbers.has(one))
    return { group: numbers.get(digest ?? '') ?? ++last, peers, updates }
  })
  const versions = totals.versions.map(([version, count]) => ({ version, peers: count }))
  const counts = { peers, ended, problems, drifting, adopted, discarded, skipped, received }
  return { ...figuresOf(totals), ...counts, losses, rates, groups, versions }
}

/** Which of the neighbours' sums go together, and what they come to: each gradient in at most one of them. */
import { type Coverage, disjoint, single, union } from './coverage.js'
import type { Edge, HeldSum } from './edge.js'
import type { OwnSum } from './ledger.js'
import type { Batch } from './predictor.js'
import { addInto, copyOf } from './vectors.js'

export interface Combination {
  readonly chosen: readonly HeldSum[]
  /** Gradients in all of them. */
  readonly count: number
}

/**
 * Held sums with pairwise disjoint coverages, larger counts first where they overlap.
 * @param except the edge whose own sum is left out, because the total goes there
 */
export function combine(edges: Iterable<Edge>, except?: Edge): Combination {
  const held: HeldSum[] = []
  for (const edge of edges) if (edge !== except && edge.held) held.push(edge.held)
  held.sort((a, b) => b.count - a.count)
  const chosen: HeldSum[] = []
  let count = 0
  for (const candidate of held) {
    if (!chosen.every(other => disjoint(other.coverage, candidate.coverage))) continue
    chosen.push(candidate)
    count += candidate.count
  }
  return { chosen, count }
}

/** Own and chosen sums added up, with the coverage of all. @param self the owner's number in coverages */
export function total(self: number, own: OwnSum, others: readonly HeldSum[]): Batch & { readonly coverage: Coverage } {
  const sum = copyOf(own.sum)
  let count = own.count
  let coverage = single(self, own.segments)
  for (const held of others) {
    addInto(sum, held.sum)
    count += held.count
    coverage = union(coverage, held.coverage)
  }
  return { sum, count, coverage }
}

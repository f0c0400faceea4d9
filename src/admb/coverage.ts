/**
 * A gradient sum travels with its coverage: whose gradients are in it, and how many segments of each one's list for the
 * current predictor (a prefix). Sums are combined only where their coverages are disjoint, which makes exactly-once true on
 * any graph, also while the tree is being rewired.
 */

/**
 * Immutable. All sums received over one edge share a list of contributors, which only grows: so to compare two of them is to
 * compare numbers at equal positions.
 */
export interface Coverage {
  /** Contributor numbers in any order, each once; may go on beyond the end of `segments`. */
  readonly contributors: readonly number[]
  /** How many segments of the contributor at the same position are covered; 0 for one that is not. */
  readonly segments: readonly number[]
}

/**
 * Changes from one list of segments to another, as triples: how many places stay as they are, how many follow that all change
 * by the same, and by how much. Nodes close segments at the same pace, so that a whole subtree is often one triple.
 */
export type Runs = readonly number[]

/** How many of a contributor's segments are covered, 0 for none. */
export function segmentsOf({ contributors, segments }: Coverage, contributor: number): number {
  for (let i = 0; i < segments.length; i++) if (contributors[i] === contributor) return segments[i]
  return 0
}

/** The contributors that a coverage covers. */
export function covered({ contributors, segments }: Coverage): number[] {
  return contributors.filter((_, i) => segments[i] > 0)
}

export function disjoint(a: Coverage, b: Coverage): boolean {
  const coveredByA = new Set(covered(a))
  return !covered(b).some(contributor => coveredByA.has(contributor))
}

/** Union of pairwise disjoint coverages, in a list of its own. */
export function union(coverages: readonly Coverage[]): Coverage {
  const contributors: number[] = []
  const segments: number[] = []
  for (const coverage of coverages) {
    for (let i = 0; i < coverage.segments.length; i++) {
      if (coverage.segments[i] === 0) continue
      contributors.push(coverage.contributors[i])
      segments.push(coverage.segments[i])
    }
  }
  return { contributors, segments }
}

/** The runs that turn `base` into `next`, place by place; what a list does not reach counts as 0. */
export function runsBetween(base: readonly number[], next: readonly number[]): Runs {
  const runs: number[] = []
  const length = Math.max(base.length, next.length)
  let end = 0
  for (let i = 0; i < length; ) {
    const change = changeAt(base, next, i)
    const start = i++
    if (change === 0) continue
    while (i < length && changeAt(base, next, i) === change) i++
    runs.push(start - end, i - start, change)
    end = i
  }
  return runs
}

function changeAt(base: readonly number[], next: readonly number[], i: number): number {
  return (i < next.length ? next[i] : 0) - (i < base.length ? base[i] : 0)
}

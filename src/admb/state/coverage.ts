/**
 * A gradient sum carries its coverage: which contributors' gradients it includes, and how many segments of each
 * contributor's list for the current predictor (always a prefix). Only sums with disjoint coverages are added, so every
 * gradient counts at most once on any graph, even while the tree is being rewired. Two runs of one peer are not disjoint, so
 * a sum has no more contributors than peers.
 */

/**
 * Immutable. All sums received over one edge share one append-only list of contributors, so comparing two of them means
 * comparing numbers at equal positions.
 */
export interface Coverage {
  /** Indices of distinct contributors, in any order; may be longer than `segments`. */
  readonly contributors: readonly number[]
  /** Number of covered segments of the contributor at the same position, 0 for none. */
  readonly segments: readonly number[]
}

/**
 * Run-length-encoded difference between two lists of segments, as triples: number of unchanged positions, length of the
 * run that follows, and the change of every position in the run. Nodes close segments at the same pace, so a whole
 * subtree is often a single triple.
 */
export type Runs = readonly number[]

/** Number of covered segments of a contributor, 0 for none. */
export function segmentsOf({ contributors, segments }: Coverage, contributor: number): number {
  for (let i = 0; i < segments.length; i++) if (contributors[i] === contributor) return segments[i]
  return 0
}

/** The contributors with at least one covered segment. */
export function covered({ contributors, segments }: Coverage): number[] {
  return contributors.filter((_, i) => segments[i] > 0)
}

/** Number of these contributors. */
export function contributorCount({ segments }: Coverage): number {
  let count = 0
  for (let i = 0; i < segments.length; i++) if (segments[i] > 0) count++
  return count
}

/** Whether no peer has contributed to both, in any of its runs. @param originOf the peer of a contributor */
export function disjoint(a: Coverage, b: Coverage, originOf: (contributor: number) => string): boolean {
  const coveredByA = new Set(covered(a).map(originOf))
  return !covered(b).some(contributor => coveredByA.has(originOf(contributor)))
}

/** Union of pairwise disjoint coverages, with a list of its own. */
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

/** The runs that turn `base` into `next`; missing positions count as 0. */
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

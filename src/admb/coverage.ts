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

/** Contributors and segments in alternation: what changes travel as. */
export type Entries = readonly number[]

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
  const theirs = new Set(covered(a))
  return !covered(b).some(contributor => theirs.has(contributor))
}

/** Union of pairwise disjoint coverages, in a list of its own. */
export function union(parts: readonly Coverage[]): Coverage {
  const contributors: number[] = []
  const segments: number[] = []
  for (const part of parts) {
    for (let i = 0; i < part.segments.length; i++) {
      if (part.segments[i] === 0) continue
      contributors.push(part.contributors[i])
      segments.push(part.segments[i])
    }
  }
  return { contributors, segments }
}

/**
 * Entries that turn the union of `base` into that of `next`, with 0 segments for a contributor that left.
 * @param base, next pairwise disjoint coverages each
 * @param apart whether the lists of all parts of `next` have no contributor in common: then parts of one list are compared
 *   position by position
 */
export function changes(base: readonly Coverage[], next: readonly Coverage[], apart: boolean): Entries {
  if (!apart || !base.every(part => part.segments.length === 0 || listed(next, part.contributors) !== undefined)) {
    return changesOf(union(base), union(next))
  }
  const result: number[] = []
  for (const { contributors, segments } of next) {
    const before = listed(base, contributors)
    if (before === segments) continue
    const length = Math.max(segments.length, before?.length ?? 0)
    for (let i = 0; i < length; i++) {
      const now = i < segments.length ? segments[i] : 0
      const then = before !== undefined && i < before.length ? before[i] : 0
      if (now !== then) result.push(contributors[i], now)
    }
  }
  return result
}

/** The segments of the part with that list. */
function listed(parts: readonly Coverage[], list: readonly number[]): readonly number[] | undefined {
  for (let i = 0; i < parts.length; i++) if (parts[i].contributors === list) return parts[i].segments
  return undefined
}

function changesOf(base: Coverage, next: Coverage): Entries {
  const before = new Map(base.contributors.map((contributor, i) => [contributor, base.segments[i]]))
  const result: number[] = []
  next.contributors.forEach((contributor, i) => {
    if (before.get(contributor) !== next.segments[i]) result.push(contributor, next.segments[i])
    before.delete(contributor)
  })
  for (const contributor of before.keys()) result.push(contributor, 0)
  return result
}

/**
 * A gradient sum travels with its coverage: whose gradients are in it, and how many segments of each one's list for the
 * current predictor (a prefix). Sums are combined only where their coverages are disjoint, which makes exactly-once true on
 * any graph, also while the tree is being rewired.
 */

/** Immutable; contributor numbers ascending, each with a positive segment count at the same position. */
export interface Coverage {
  readonly contributors: Int32Array
  readonly segments: Int32Array
}

export const EMPTY: Coverage = { contributors: new Int32Array(0), segments: new Int32Array(0) }

/** Coverage of one contributor's first `segments` segments; empty if there are none. */
export function single(contributor: number, segments: number): Coverage {
  if (segments === 0) return EMPTY
  return { contributors: Int32Array.of(contributor), segments: Int32Array.of(segments) }
}

/** Builds a coverage from entries in any order; of a contributor given twice the last one counts. Zero segments leave it out. */
export function fromEntries(entries: Iterable<readonly [number, number]>): Coverage {
  const sorted = [...new Map(entries)].filter(entry => entry[1] > 0).sort((a, b) => a[0] - b[0])
  const contributors = new Int32Array(sorted.length)
  const segments = new Int32Array(sorted.length)
  sorted.forEach((entry, i) => {
    contributors[i] = entry[0]
    segments[i] = entry[1]
  })
  return { contributors, segments }
}

/** How many of a contributor's segments are covered, 0 for none. */
export function segmentsOf(coverage: Coverage, contributor: number): number {
  const { contributors, segments } = coverage
  let low = 0
  let high = contributors.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    if (contributors[middle] === contributor) return segments[middle]
    if (contributors[middle] < contributor) low = middle + 1
    else high = middle - 1
  }
  return 0
}

export function disjoint(a: Coverage, b: Coverage): boolean {
  const x = a.contributors
  const y = b.contributors
  let i = 0
  let j = 0
  while (i < x.length && j < y.length) {
    if (x[i] === y[j]) return false
    if (x[i] < y[j]) i++
    else j++
  }
  return true
}

/** Union of two disjoint coverages. */
export function union(a: Coverage, b: Coverage): Coverage {
  if (a.contributors.length === 0) return b
  if (b.contributors.length === 0) return a
  const length = a.contributors.length + b.contributors.length
  const contributors = new Int32Array(length)
  const segments = new Int32Array(length)
  let i = 0
  let j = 0
  for (let k = 0; k < length; k++) {
    const fromA = j >= b.contributors.length || (i < a.contributors.length && a.contributors[i] < b.contributors[j])
    contributors[k] = fromA ? a.contributors[i] : b.contributors[j]
    segments[k] = fromA ? a.segments[i++] : b.segments[j++]
  }
  return { contributors, segments }
}

/** Entries that turn `base` into `next`: [contributor, segments], 0 segments for a contributor that left. Ascending. */
export function changes(base: Coverage, next: Coverage): [number, number][] {
  const result: [number, number][] = []
  let i = 0
  let j = 0
  while (i < base.contributors.length || j < next.contributors.length) {
    const a = i < base.contributors.length ? base.contributors[i] : Number.POSITIVE_INFINITY
    const b = j < next.contributors.length ? next.contributors[j] : Number.POSITIVE_INFINITY
    if (a < b) {
      result.push([a, 0])
      i++
    } else {
      if (b < a || base.segments[i] !== next.segments[j]) result.push([b, next.segments[j]])
      if (a === b) i++
      j++
    }
  }
  return result
}

/** `base` with changed entries, the inverse of `changes`. */
export function withChanges(base: Coverage, changed: readonly (readonly [number, number])[]): Coverage {
  if (changed.length === 0) return base
  const entries: (readonly [number, number])[] = []
  for (let i = 0; i < base.contributors.length; i++) entries.push([base.contributors[i], base.segments[i]])
  for (const entry of changed) entries.push(entry)
  return fromEntries(entries)
}

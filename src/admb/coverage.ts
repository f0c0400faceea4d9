/**
 * A gradient sum travels with its coverage: whose gradients are in it, and how many segments of each one's list for the
 * current predictor (a prefix). Sums are combined only where their coverages are disjoint, which makes exactly-once true on
 * any graph, also while the tree is being rewired.
 */

import { FrameError } from './errors.js'

/** Immutable; contributor numbers ascending, each with a positive segment count at the same position. */
export interface Coverage {
  readonly contributors: readonly number[]
  readonly segments: readonly number[]
}

export const EMPTY: Coverage = { contributors: [], segments: [] }

/** Coverage of one contributor's first `segments` segments; empty if there are none. */
export function single(contributor: number, segments: number): Coverage {
  if (segments === 0) return EMPTY
  return { contributors: [contributor], segments: [segments] }
}

/** Contributors and segments in alternation: what changes travel as. */
export type Entries = readonly number[]

/** Builds a coverage from entries in any order; zero segments leave one out. Throws FrameError if a contributor comes twice. */
export function fromEntries(entries: Entries): Coverage {
  const sorted = ascending(entries)
  const contributors: number[] = []
  const segments: number[] = []
  for (let i = 0; i < sorted.length; i += 2) {
    if (i > 0 && sorted[i] === sorted[i - 2]) throw new FrameError('a coverage names a contributor twice')
    if (sorted[i + 1] === 0) continue
    contributors.push(sorted[i])
    segments.push(sorted[i + 1])
  }
  return { contributors, segments }
}

/** The entries by ascending contributor. Mostly they are nearly so already, which insertion makes use of. */
function ascending(entries: Entries): number[] {
  const sorted = entries.slice()
  if (sorted.length > 512) {
    const order = Array.from({ length: sorted.length / 2 }, (_, i) => 2 * i).sort((a, b) => entries[a] - entries[b])
    order.forEach((from, i) => {
      sorted[2 * i] = entries[from]
      sorted[2 * i + 1] = entries[from + 1]
    })
    return sorted
  }
  for (let i = 2; i < sorted.length; i += 2) {
    const contributor = sorted[i]
    const segments = sorted[i + 1]
    let at = i
    for (; at > 0 && sorted[at - 2] > contributor; at -= 2) {
      sorted[at] = sorted[at - 2]
      sorted[at + 1] = sorted[at - 1]
    }
    sorted[at] = contributor
    sorted[at + 1] = segments
  }
  return sorted
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
  const contributors: number[] = []
  const segments: number[] = []
  let i = 0
  let j = 0
  for (let k = 0; k < length; k++) {
    const fromA = j >= b.contributors.length || (i < a.contributors.length && a.contributors[i] < b.contributors[j])
    contributors.push(fromA ? a.contributors[i] : b.contributors[j])
    segments.push(fromA ? a.segments[i++] : b.segments[j++])
  }
  return { contributors, segments }
}

/** Entries that turn `base` into `next`, with 0 segments for a contributor that left. Ascending. */
export function changes(base: Coverage, next: Coverage): Entries {
  const result: number[] = []
  let i = 0
  let j = 0
  while (i < base.contributors.length || j < next.contributors.length) {
    const a = i < base.contributors.length ? base.contributors[i] : Number.POSITIVE_INFINITY
    const b = j < next.contributors.length ? next.contributors[j] : Number.POSITIVE_INFINITY
    if (a < b) {
      result.push(a, 0)
      i++
    } else {
      if (b < a || base.segments[i] !== next.segments[j]) result.push(b, next.segments[j])
      if (a === b) i++
      j++
    }
  }
  return result
}

/** `base` with changed entries, given in any order: the inverse of `changes`. */
export function withChanges(base: Coverage, changed: Entries): Coverage {
  if (changed.length === 0) return base
  if (base.contributors.length === 0) return fromEntries(changed)
  const next = ascending(changed)
  const merged: number[] = []
  let i = 0
  for (let j = 0; j < next.length; j += 2) {
    for (; i < base.contributors.length && base.contributors[i] < next[j]; i++) {
      merged.push(base.contributors[i], base.segments[i])
    }
    if (i < base.contributors.length && base.contributors[i] === next[j]) i++
    merged.push(next[j], next[j + 1])
  }
  for (; i < base.contributors.length; i++) merged.push(base.contributors[i], base.segments[i])
  return fromEntries(merged)
}

/**
 * Limits of what a node accepts, stores and sends. Correct peers never reach them. Everything that is accepted can be encoded again:
 * a frame contains a lineage and a sum, whose contributors fit in a dictionary together.
 */

import { type Coverage, contributorCount } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import { FrameError } from './bytes.js'

/** A node waits until it has this many times the gradients that an update needs, which may be those of one segment. */
export const WAIT_BATCHES = 4

/** Number of updates for which a node remembers its own gradients. */
export const HISTORY_UPDATES = 1 << 14

/** Limits that are checked before memory is allocated for a frame. */
export const FRAME_LIMITS = {
  /** Maximum length of an origin, in bytes. */
  origin: 64,
  /** Maximum number of entries of a dictionary, and of definitions in a frame. */
  definitions: 1 << 17,
  /** Maximum number of contributors in a coverage, and in all coverages of a lineage. */
  contributors: 60_000,
  /** Maximum number of headers. */
  headers: 1024,
  /** Maximum number of gradients in a sum or a batch. */
  count: 2 ** 40,
  /** Maximum number of updates of a predictor. */
  updates: 2 ** 48
} as const

/** Maximum of the gradients that a node uses of all its neighbours together, and of its own, each one half of the limit of a sum. */
export const MAX_SHARE = FRAME_LIMITS.count / 2
/** Maximum of b. */
export const MAX_BATCH = MAX_SHARE / WAIT_BATCHES

/**
 * Maximum sizes of the coverages of a lineage, added up: of more than `LEAST_HEADERS` headers, and of any number. Older headers are
 * left out, but never the newest one.
 */
export const LINEAGE_LIMITS = { long: 1 << 16, any: 1 << 18 } as const
export const LEAST_HEADERS = 64

/**
 * Maximum length of a lineage that consists of these headers, newest first.
 * @param size total of the sizes of their coverages @default measured
 * @param isLow whether `areLow` holds for all of them @default measured
 */
export function lineageLength(headers: readonly Header[], size = sizeOfCoverages(headers), isLow?: boolean): number {
  let { length } = headers
  let rest = size
  while (isLineageTooLarge(length, rest)) rest -= headers[--length].coverage.contributors.length
  // Indices are compact: mostly all of them are below the limit.
  if (rest <= FRAME_LIMITS.contributors || (isLow ?? headers.slice(0, length).every(areLow))) return length
  const distinct = new Set<number>()
  for (let i = 0; i < length; i++) {
    for (const contributor of headers[i].coverage.contributors) distinct.add(contributor)
    if (distinct.size > FRAME_LIMITS.contributors) return i
  }
  return length
}

/** Total of the sizes of the coverages of headers [from, to). @param from @default 0 @param to @default all */
export function sizeOfCoverages(headers: readonly Header[], from = 0, to = headers.length): number {
  let size = 0
  for (let i = from; i < to; i++) size += headers[i].coverage.contributors.length
  return size
}

/** Whether the indices of all contributors are below the limit of their number. */
export function areLow({ coverage }: Header): boolean {
  return coverage.contributors.every(contributor => contributor < FRAME_LIMITS.contributors)
}

/** @param size total of the sizes of the coverages */
export function isLineageTooLarge(headers: number, size: number): boolean {
  return size > (headers > LEAST_HEADERS ? LINEAGE_LIMITS.long : LINEAGE_LIMITS.any)
}

/**
 * Checks the number of gradients of a sum or a batch: each contributor has one, and each segment has 4 b at most.
 * @param maxBatch the largest b
 * @throws FrameError
 */
export function checkCount(count: number, coverage: Coverage, maxBatch: number): void {
  let segments = 0
  for (let i = 0; i < coverage.segments.length; i++) segments += coverage.segments[i]
  const most = WAIT_BATCHES * maxBatch
  if (count > most * segments)
    throw new FrameError(`${count} gradients in ${segments} segments; at most ${most} each are possible`)
  const contributors = contributorCount(coverage)
  if (count < contributors) throw new FrameError(`${count} gradients of ${contributors} contributors`)
}

/**
 * Decoding state of one edge session: the dictionary of contributors that the neighbour has defined, the predictor id of
 * its last frame, and the coverages of the sums received, which are the bases of later differences.
 */

import type { Coverage } from '../state/coverage.js'
import type { PredictorId } from '../state/predictor-id.js'
import { FrameError } from './bytes.js'
import { MAX_BASE_LENGTH, MAX_BASES, RecentUse, SequenceWindow } from './coverage-encoder.js'
import { FragmentBuffer } from './fragments.js'

export class CoverageDecoder {
  /** Fragments that arrived before their frame. */
  readonly fragments = new FragmentBuffer()
  /** Contributors of the sums received, in order of first appearance; shared by their coverages. */
  contributors: number[] = []
  /** Certificates in the neighbour's dictionary that this node has not verified, by contributor. */
  readonly claims = new Map<number, Uint8Array>()
  /** Predictor id of the last frame and the bytes of its digest: most frames repeat it. */
  lastId: PredictorId | undefined
  readonly lastDigest = new Uint8Array(16)
  /** The id with this digest. */
  digestId: PredictorId | undefined

  /** The neighbour's dictionary: indices into this node's `ContributorTable`. */
  readonly #dictionary: number[] = []
  readonly #defined = new Set<number>()
  /** Whether the current definitions replace the dictionary. */
  #isReplaced = false
  /** Positions in `contributors` by dictionary index; −1 if not assigned yet. */
  readonly #localIndices: number[] = []
  readonly #indexByContributor = new Map<number, number>()
  readonly #use = new RecentUse()
  readonly #received = new SequenceWindow<Coverage>(MAX_BASES, {
    sizeOf: ({ segments }) => segments.length,
    maxSize: MAX_BASE_LENGTH
  })

  /** Number of dictionary entries. */
  get size(): number {
    return this.#dictionary.length
  }

  /** Starts a definition of `count` dictionary entries from index `from`; if that is 0, they replace the dictionary. */
  startDefinitions(from: number, count: number): void {
    if (from > this.#dictionary.length)
      throw new FrameError(`dictionary definition starts at ${from}, after a gap: it has ${this.size} entries`)
    this.#isReplaced = from === 0
    if (from > 0) return
    this.#truncate(count)
    this.claims.clear()
  }

  /** The contributor that is defined at an index; undefined if there is none. */
  defined(index: number): number | undefined {
    return this.#dictionary[index]
  }

  define(index: number, contributor: number): void {
    if (index < this.#dictionary.length) {
      if (this.#dictionary[index] === contributor) return
      if (!this.#isReplaced) throw new FrameError(`contributor ${index} is redefined`)
      this.#truncate(index)
    }
    if (this.#defined.has(contributor)) throw new FrameError(`contributor ${index} has been defined at another index`)
    this.#defined.add(contributor)
    this.#dictionary.push(contributor)
    this.#localIndices.push(-1)
  }

  /** Removes the entries from this index on. A dictionary that replaces another one mostly begins with the same entries. */
  #truncate(length: number): void {
    for (let i = length; i < this.#dictionary.length; i++) this.#defined.delete(this.#dictionary[i])
    this.#dictionary.length = Math.min(length, this.#dictionary.length)
    this.#localIndices.length = this.#dictionary.length
  }

  /** The contributor at a dictionary index. */
  contributor(index: number): number {
    if (index >= this.#dictionary.length) throw new FrameError(`contributor ${index} is undefined`)
    return this.#dictionary[index]
  }

  /** Position in `contributors` of the dictionary entry `index`, which must be defined. */
  localIndex(index: number): number {
    const known = this.#localIndices[index]
    if (known >= 0) return known
    const local = this.#indexOf(this.#dictionary[index])
    this.#localIndices[index] = local
    return local
  }

  /** Adds the contributors to which this end refers. */
  mark(live: Set<number>): void {
    for (const contributor of this.#dictionary) live.add(contributor)
    for (const contributor of this.contributors) live.add(contributor)
    for (const { contributors } of this.#received.values()) {
      if (contributors !== this.contributors) for (const contributor of contributors) live.add(contributor)
    }
  }

  /** An epoch has ended. @returns whether many of `contributors` have left, so that the list should be reset */
  endEpoch(): boolean {
    const last = this.#received.last
    return this.#use.isStale(this.contributors.length, last?.contributors === this.contributors ? last.segments : [])
  }

  /** Starts a new `contributors` list; coverages received so far keep the old one. */
  resetContributors(): void {
    this.contributors = []
    this.#use.clear()
    this.#localIndices.fill(-1)
    this.#indexByContributor.clear()
  }

  /** Copy of the segments, ordered like `contributors`, of the sum with that sequence number; undefined if unknown. */
  segments(sequence: number): number[] | undefined {
    if (sequence === 0) return []
    const coverage = this.#received.get(sequence)
    if (coverage === undefined) return undefined
    const { segments } = this.reorder(coverage)
    return segments === coverage.segments ? segments.slice() : segments
  }

  /** Reorders a coverage received earlier like `contributors`, which may have been reset since. */
  reorder(coverage: Coverage): { readonly contributors: number[]; readonly segments: number[] } {
    const { contributors } = this
    if (coverage.contributors === contributors) return { contributors, segments: coverage.segments as number[] }
    const segments: number[] = []
    coverage.segments.forEach((covered, i) => {
      if (covered === 0) return
      const index = this.#indexOf(coverage.contributors[i])
      while (segments.length <= index) segments.push(0)
      segments[index] = covered
    })
    return { contributors, segments }
  }

  /** @param base sequence number of the sum that the difference refers to: older ones are no longer needed */
  recordReceived(sequence: number, coverage: Coverage, base: number): void {
    this.#received.evictBefore(base)
    this.#received.add(sequence, coverage)
  }

  #indexOf(contributor: number): number {
    let index = this.#indexByContributor.get(contributor)
    if (index === undefined) {
      index = this.contributors.push(contributor) - 1
      this.#indexByContributor.set(contributor, index)
    }
    return index
  }
}

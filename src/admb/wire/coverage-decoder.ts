/**
 * Decoding state of one edge session: the dictionary of contributors that the neighbour has
 * defined, the predictor id of its last frame, and the coverages of the sums received, which are
 * the bases of later differences.
 */

import { type Coverage, changedRuns, IndexSet, lengthOf, type Runs } from '../state/coverage.js'
import type { PredictorId } from '../state/predictor-id.js'
import { FrameError } from './bytes.js'
import { MAX_BASE_LENGTH, MAX_BASES, RecentUse, SequenceWindow } from './coverage-encoder.js'
import { FragmentBuffer } from './fragments.js'

export class CoverageDecoder {
  /** Fragments that arrived before their frame. */
  readonly fragments = new FragmentBuffer()
  /** Contributors of the sums received since the last reset, in order of first appearance. */
  contributors: number[] = []
  /** Certificates in the neighbour's dictionary that this node has not verified, by contributor. */
  readonly claims = new Map<number, Uint8Array>()
  /** Predictor id of the last frame and the bytes of its digest: most frames repeat it. */
  lastId: PredictorId | undefined
  readonly lastDigest = new Uint8Array(16)
  /** The id with this digest. */
  digestId: PredictorId | undefined

  /** The neighbour's dictionary, as indices into the table. The coverages of its sums share it. */
  #dictionary: number[]
  readonly #defined = new IndexSet()
  /** Whether the current definitions replace the dictionary. */
  #isReplaced = false
  /** Indices of the dictionary entries that are in `contributors`. */
  readonly #listed = new IndexSet()
  #listedCount = 0
  readonly #use = new RecentUse()
  readonly #received = new SequenceWindow<Coverage>(MAX_BASES, {
    sizeOf: ({ runs }) => runs.length,
    maxSize: MAX_BASE_LENGTH
  })

  /** @param dictionary the one that all edges have in common @default empty */
  constructor(dictionary: number[] = []) {
    this.#dictionary = dictionary
  }

  /** Number of dictionary entries. */
  get size(): number {
    return this.#dictionary.length
  }

  /** Starts a definition of `count` entries from `from`; from 0 they replace the dictionary. */
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
    if (!this.#defined.add(contributor)) throw new FrameError(`contributor ${index} has been defined at another index`)
    this.#dictionary.push(contributor)
  }

  /** Removes the entries from this index on. A new dictionary often begins in the same way. */
  #truncate(length: number): void {
    if (length >= this.#dictionary.length) return
    for (let i = length; i < this.#dictionary.length; i++) {
      this.#defined.delete(this.#dictionary[i])
      if (this.#listed.has(i)) this.#listedCount--
      this.#listed.delete(i)
    }
    // Coverages received so far keep the list.
    this.#dictionary = this.#dictionary.slice(0, length)
  }

  /** The contributor at a dictionary index. */
  contributor(index: number): number {
    if (index >= this.#dictionary.length) throw new FrameError(`contributor ${index} is undefined`)
    return this.#dictionary[index]
  }

  /** Adds the contributors to which this end refers. */
  mark(live: Set<number>): void {
    for (const contributor of this.#dictionary) live.add(contributor)
    for (const contributor of this.contributors) live.add(contributor)
    for (const { contributors } of this.#received.values()) {
      if (contributors !== this.#dictionary) for (const contributor of contributors) live.add(contributor)
    }
  }

  /**
   * An epoch has ended.
   * @returns whether many of `contributors` have left, so that the list should be reset
   */
  endEpoch(): boolean {
    return this.#use.isStale(this.contributors.length, this.#received.last?.runs ?? [])
  }

  /** Starts a new `contributors` list. */
  resetContributors(): void {
    this.contributors = []
    this.#use.clear()
    this.#listed.clear()
    this.#listedCount = 0
  }

  /**
   * Coverage of a sum, by its difference to the sum with that sequence number.
   * @returns undefined if that sum is unknown
   */
  coverage(base: number, changes: Runs): Coverage | undefined {
    const known = base === 0 ? undefined : this.#received.get(base)
    if (base > 0 && known?.contributors !== this.#dictionary) return undefined
    const runs = changedRuns(known?.runs ?? [], changes)
    return { contributors: this.#dictionary, runs, size: lengthOf(runs) }
  }

  /**
   * @param base sequence number of the sum that the difference refers to: older ones are no longer
   * needed
   */
  recordReceived(sequence: number, coverage: Coverage, base: number): void {
    if (this.#listedCount < this.#dictionary.length) this.#list(coverage.runs)
    this.#received.evictBefore(base)
    this.#received.add(sequence, coverage)
  }

  /** Adds the contributors of these positions to the list. */
  #list(runs: Runs): void {
    let position = 0
    for (let r = 0; r < runs.length; r += 3) {
      position += runs[r]
      for (const end = position + runs[r + 1]; position < end; position++) {
        if (!this.#listed.add(position)) continue
        this.#listedCount++
        this.contributors.push(this.#dictionary[position])
      }
    }
  }
}

/**
 * What one neighbour has told a node in one session: its list of contributors, the name and digest in its last frame, and the
 * coverages of the sums received, against which later ones are given as changes.
 */

import { FrameError } from './bytes.js'
import type { Coverage } from './coverage.js'
import { MAX_BASES } from './coverage-encoder.js'
import { FragmentBuffer } from './fragments.js'
import type { PredictorId } from './predictor-id.js'
import { SequenceWindow } from './recent.js'

export class CoverageDecoder {
  /** Vectors that came ahead of their frame. */
  readonly fragments = new FragmentBuffer()
  /** Contributors of the sums received, in the order in which they were first mentioned; shared by their coverages. */
  contributors: number[] = []
  /** The name in the last frame, and the bytes of its digest: most frames repeat it. */
  lastId: PredictorId | undefined
  readonly lastDigest = new Uint8Array(16)

  /** The neighbour's list, in own numbers. */
  #dictionary: number[] = []
  #defined = new Set<number>()
  /** Places in `contributors` by the neighbour's; −1 for one that was not asked for yet. */
  #localIndices: number[] = []
  readonly #indexByContributor = new Map<number, number>()
  readonly #received = new SequenceWindow<Coverage>(MAX_BASES)

  /** Places on the neighbour's list. */
  get size(): number {
    return this.#dictionary.length
  }

  /** A definition of the neighbour's places from `from` on follows; from 0 on it starts a list anew. */
  startDefinitions(from: number): void {
    if (from > this.#dictionary.length)
      throw new FrameError(`contributors are defined from ${from} on, after ${this.size}`)
    if (from > 0) return
    this.#dictionary = []
    this.#defined = new Set()
    this.#localIndices = []
  }

  define(index: number, contributor: number): void {
    if (index < this.#dictionary.length) {
      if (this.#dictionary[index] !== contributor) throw new FrameError(`contributor ${index} is defined in two ways`)
      return
    }
    if (this.#defined.has(contributor)) throw new FrameError(`contributor ${index} was defined before`)
    this.#defined.add(contributor)
    this.#dictionary.push(contributor)
    this.#localIndices.push(-1)
  }

  /** The contributor at a place of the neighbour's list. */
  contributor(index: number): number {
    if (index >= this.#dictionary.length) throw new FrameError(`contributor ${index} was never defined`)
    return this.#dictionary[index]
  }

  /** Where the contributor at a place of the neighbour's list, one that is defined, stands in `contributors`. */
  localIndex(index: number): number {
    const known = this.#localIndices[index]
    if (known >= 0) return known
    const local = this.#indexOf(this.#dictionary[index])
    this.#localIndices[index] = local
    return local
  }

  /** Starts `contributors` anew; coverages received so far keep the old ones. */
  resetContributors(): void {
    this.contributors = []
    this.#localIndices.fill(-1)
    this.#indexByContributor.clear()
  }

  /** A copy of the segments, in the order of `contributors`, of the sum of that sequence number; undefined if it is not known. */
  segments(sequence: number): number[] | undefined {
    if (sequence === 0) return []
    const coverage = this.#received.get(sequence)
    if (coverage === undefined) return undefined
    const { segments } = this.reorder(coverage)
    return segments === coverage.segments ? segments.slice() : segments
  }

  /** A coverage received here in the order of `contributors`, which may have been renewed since. */
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

  /** @param base sequence number of the sum against which it was given: older ones are not needed any more */
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

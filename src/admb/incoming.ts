/**
 * What one neighbour has told a node in one session: its list of contributors, the name and digest in its last frame, and the
 * coverages of the sums received, against which later ones are given as changes.
 */
import type { Coverage } from './coverage.js'
import { FrameError } from './errors.js'
import { FragmentBuffer } from './fragments.js'
import { BASES } from './outgoing.js'
import type { PredictorId } from './predictor-id.js'
import { Recent } from './recent.js'

export class Incoming {
  /** Vectors that came ahead of their frame. */
  readonly parts = new FragmentBuffer()
  /** Contributors of the sums received, in the order in which they were first mentioned; shared by their coverages. */
  contributors: number[] = []
  /** The name in the last frame, and the bytes of its digest: most frames repeat it. */
  lastName: PredictorId | undefined
  readonly lastDigest = new Uint8Array(16)

  /** The neighbour's list, in own numbers. */
  #list: number[] = []
  #listed = new Set<number>()
  /** Places in `contributors` by the neighbour's; −1 for one that was not asked for yet. */
  #places: number[] = []
  readonly #placesByContributor = new Map<number, number>()
  readonly #received = new Recent<Coverage>(BASES)

  /** Places on the neighbour's list. */
  get length(): number {
    return this.#list.length
  }

  /** A definition of the neighbour's places from `from` on follows; from 0 on it starts a list anew. */
  beginDefinitions(from: number): void {
    if (from > this.#list.length) throw new FrameError(`contributors are defined from ${from} on, after ${this.length}`)
    if (from > 0) return
    this.#list = []
    this.#listed = new Set()
    this.#places = []
  }

  define(place: number, contributor: number): void {
    if (place < this.#list.length) {
      if (this.#list[place] !== contributor) throw new FrameError(`contributor ${place} is defined in two ways`)
      return
    }
    if (this.#listed.has(contributor)) throw new FrameError(`contributor ${place} was defined before`)
    this.#listed.add(contributor)
    this.#list.push(contributor)
    this.#places.push(-1)
  }

  /** The contributor at a place of the neighbour's list. */
  contributor(place: number): number {
    if (place >= this.#list.length) throw new FrameError(`contributor ${place} was never defined`)
    return this.#list[place]
  }

  /** Where the contributor at a place of the neighbour's list, one that is defined, stands in `contributors`. */
  place(theirs: number): number {
    const known = this.#places[theirs]
    if (known >= 0) return known
    const place = this.#placeOf(this.#list[theirs])
    this.#places[theirs] = place
    return place
  }

  /** Starts `contributors` anew; coverages received so far keep the old ones. */
  renewContributors(): void {
    this.contributors = []
    this.#places.fill(-1)
    this.#placesByContributor.clear()
  }

  /** A copy of the segments, in the order of `contributors`, of the sum of that sequence number; undefined if it is not known. */
  segments(sequence: number): number[] | undefined {
    if (sequence === 0) return []
    const coverage = this.#received.get(sequence)
    if (coverage === undefined) return undefined
    const { segments } = this.current(coverage)
    return segments === coverage.segments ? segments.slice() : segments
  }

  /** A coverage received here in the order of `contributors`, which may have been renewed since. */
  current(coverage: Coverage): { readonly contributors: number[]; readonly segments: number[] } {
    const { contributors } = this
    if (coverage.contributors === contributors) return { contributors, segments: coverage.segments as number[] }
    const segments: number[] = []
    coverage.segments.forEach((covered, i) => {
      if (covered === 0) return
      const place = this.#placeOf(coverage.contributors[i])
      while (segments.length <= place) segments.push(0)
      segments[place] = covered
    })
    return { contributors, segments }
  }

  /** @param base sequence number of the sum against which it was given: older ones are not needed any more */
  noteReceived(sequence: number, coverage: Coverage, base: number): void {
    this.#received.dropBefore(base)
    this.#received.add(sequence, coverage)
  }

  #placeOf(contributor: number): number {
    let place = this.#placesByContributor.get(contributor)
    if (place === undefined) {
      place = this.contributors.push(contributor) - 1
      this.#placesByContributor.set(contributor, place)
    }
    return place
  }
}

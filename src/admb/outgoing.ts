/**
 * What a node has told one neighbour in one session: the list of contributors, whose places stand for them in frames, and the
 * coverages of the sums sent, against which later ones are given as changes.
 */
import type { Coverage } from './coverage.js'
import { Recent } from './recent.js'

/** How many coverages of sums are kept as bases for later changes. */
export const BASES = 64

interface Base {
  /** Sequence number of the sum, 0 for none. */
  readonly sequence: number
  /** By place. */
  readonly segments: readonly number[]
}

const NO_BASE: Base = { sequence: 0, segments: [] }

export class Outgoing {
  /** Contributors by place. */
  #list: number[] = []
  /** Places by contributor. */
  #places: number[] = []
  /** How much of the list the neighbour is known to have. */
  #confirmed = 0
  /** Frames of which it is not known whether they arrived, and how much of the list is known with each. */
  #unconfirmed: { readonly sequence: number; readonly length: number }[] = []
  /** The sum that the neighbour holds, as it last said. */
  #held = 0
  #sent = this.#bases()
  /** Lists that are of no use as bases any more, to be written over. */
  #spare: number[][] = []

  /** Places taken. */
  get length(): number {
    return this.#list.length
  }

  /** Sequence number of the sum that the neighbour holds for the predictor held here, 0 for none. */
  get held(): number {
    return this.#held
  }

  /** The contributor's place, the next free one if it has none. */
  place(contributor: number): number {
    const known = this.#places[contributor]
    if (known !== undefined) return known
    const place = this.#list.push(contributor) - 1
    this.#places[contributor] = place
    return place
  }

  /** The union of pairwise disjoint coverages by place. */
  segments(parts: readonly Coverage[]): number[] {
    const result = this.#spare.pop() ?? []
    for (let i = 0; i < result.length; i++) result[i] = 0
    while (result.length < this.#list.length) result.push(0)
    for (const { contributors, segments } of parts) {
      for (let i = 0; i < segments.length; i++) {
        if (segments[i] === 0) continue
        const place = this.place(contributors[i])
        while (result.length <= place) result.push(0)
        result[place] = segments[i]
      }
    }
    return result
  }

  /** The part of the list that the frame of that sequence number must define; noted as sent with it. */
  definitions(sequence: number): { readonly from: number; readonly contributors: readonly number[] } {
    const { length } = this.#list
    const from = this.#confirmed
    if (from < length) this.#unconfirmed.push({ sequence, length })
    return { from, contributors: from < length ? this.#list.slice(from) : NOTHING }
  }

  /** The frame of that sequence number has arrived; older ones may have been lost. */
  confirm(sequence: number): void {
    while (this.#unconfirmed.length > 0 && this.#unconfirmed[0].sequence <= sequence) {
      const { sequence: of, length } = this.#unconfirmed[0]
      if (of === sequence) this.#confirmed = length
      this.#unconfirmed.shift()
    }
  }

  /** Starts the list anew. */
  renew(): void {
    this.#list = []
    this.#places = []
    this.#confirmed = 0
    this.#unconfirmed = []
    this.#sent = this.#bases()
    this.#spare = []
  }

  /** The last sum of this epoch that the neighbour holds. */
  base(): Base {
    const segments = this.#sent.get(this.#held)
    return segments === undefined ? NO_BASE : { sequence: this.#held, segments }
  }

  /** @param segments of the sum sent; given away */
  noteSent(sequence: number, segments: number[]): void {
    this.#sent.add(sequence, segments)
  }

  noteHeld(sequence: number): void {
    if (sequence === this.#held) return
    this.#held = sequence
    this.#sent.dropBefore(sequence)
  }

  #bases(): Recent<number[]> {
    return new Recent(BASES, segments => this.#spare.push(segments))
  }
}

const NOTHING: readonly number[] = []

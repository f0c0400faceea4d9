/**
 * What a node has told one neighbour in one session: the list of contributors, whose places stand for them in frames, and the
 * coverages of the sums sent, against which later ones are given as changes.
 */
import type { Coverage } from './coverage.js'
import { SequenceWindow } from './recent.js'

/** How many coverages of sums are kept as bases for later changes. */
export const MAX_BASES = 64

interface Base {
  /** Sequence number of the sum, 0 for none. */
  readonly sequence: number
  /** By place. */
  readonly segments: readonly number[]
}

const NO_BASE: Base = { sequence: 0, segments: [] }

export class CoverageEncoder {
  /** Contributors by place. */
  #dictionary: number[] = []
  /** Places by contributor. */
  #indices: number[] = []
  /** How much of the list the neighbour is known to have. */
  #acknowledged = 0
  /** Frames of which it is not known whether they arrived, and how much of the list is known with each. */
  #unacknowledged: { readonly sequence: number; readonly size: number }[] = []
  /** The sum that the neighbour holds, as it last said. */
  #acknowledgedSum = 0
  #sent = this.#createWindow()
  /** Lists that are of no use as bases any more, to be written over. */
  #spare: number[][] = []

  /** Places taken. */
  get size(): number {
    return this.#dictionary.length
  }

  /** Sequence number of the sum that the neighbour holds for the predictor held here, 0 for none. */
  get acknowledgedSum(): number {
    return this.#acknowledgedSum
  }

  /** The contributor's place, the next free one if it has none. */
  index(contributor: number): number {
    const known = this.#indices[contributor]
    if (known !== undefined) return known
    const index = this.#dictionary.push(contributor) - 1
    this.#indices[contributor] = index
    return index
  }

  /** The union of pairwise disjoint coverages by place. */
  segments(coverages: readonly Coverage[]): number[] {
    const result = this.#spare.pop() ?? []
    for (let i = 0; i < result.length; i++) result[i] = 0
    while (result.length < this.#dictionary.length) result.push(0)
    for (const { contributors, segments } of coverages) {
      for (let i = 0; i < segments.length; i++) {
        if (segments[i] === 0) continue
        const index = this.index(contributors[i])
        while (result.length <= index) result.push(0)
        result[index] = segments[i]
      }
    }
    return result
  }

  /** The part of the list that the frame of that sequence number must define; noted as sent with it. */
  definitions(sequence: number): { readonly from: number; readonly contributors: readonly number[] } {
    const { length } = this.#dictionary
    const from = this.#acknowledged
    if (from < length) this.#unacknowledged.push({ sequence, size: length })
    return { from, contributors: from < length ? this.#dictionary.slice(from) : NO_CONTRIBUTORS }
  }

  /** The frame of that sequence number has arrived; older ones may have been lost. */
  acknowledge(sequence: number): void {
    while (this.#unacknowledged.length > 0 && this.#unacknowledged[0].sequence <= sequence) {
      const { sequence: sent, size } = this.#unacknowledged[0]
      if (sent === sequence) this.#acknowledged = size
      this.#unacknowledged.shift()
    }
  }

  /** Starts the list anew. */
  reset(): void {
    this.#dictionary = []
    this.#indices = []
    this.#acknowledged = 0
    this.#unacknowledged = []
    this.#sent = this.#createWindow()
    this.#spare = []
  }

  /** The last sum of this epoch that the neighbour holds. */
  base(): Base {
    const segments = this.#sent.get(this.#acknowledgedSum)
    return segments === undefined ? NO_BASE : { sequence: this.#acknowledgedSum, segments }
  }

  /** @param segments of the sum sent; given away */
  recordSent(sequence: number, segments: number[]): void {
    this.#sent.add(sequence, segments)
  }

  acknowledgeSum(sequence: number): void {
    if (sequence === this.#acknowledgedSum) return
    this.#acknowledgedSum = sequence
    this.#sent.evictBefore(sequence)
  }

  #createWindow(): SequenceWindow<number[]> {
    return new SequenceWindow(MAX_BASES, segments => this.#spare.push(segments))
  }
}

const NO_CONTRIBUTORS: readonly number[] = []

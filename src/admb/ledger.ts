/**
 * A node's own gradients. While it holds one predictor (an epoch) they form an ordered list of segments; a segment closes
 * whenever a sum is sent, so that any sum anywhere covers a prefix of the list. When the node turns to another predictor,
 * the headers on that predictor's lineage tell which segments are used up; the others, while they are young enough, start
 * the next epoch's list. So no gradient is wasted and none is used twice on any lineage. With `carry` 0 every epoch starts
 * empty, which is the algorithm as published.
 */
import type { Blocks } from '../learner/types.js'
import type { Buffers } from './buffers.js'
import { type Coverage, segmentsOf } from './coverage.js'
import { type PredictorName, sameName } from './name.js'
import type { Header } from './predictor.js'
import { addInto, clear, copyOf } from './vectors.js'

/** Consecutive own gradients that were closed together. */
interface Segment {
  /** Undefined with carry 0: nothing will ask for it again. */
  readonly sum: Blocks | undefined
  readonly count: number
  /** The period in which it was closed. */
  readonly period: number
  /** Updates of the predictor at which its gradients were taken. */
  readonly born: number
  used: boolean
  /** The last turns in which it was met at all, met as used, and met in the newest epoch on the lineage. */
  met: number
  metUsed: number
  metNearest: number
}

interface Epoch {
  readonly name: PredictorName
  readonly segments: Segment[]
}

/** The own part of a sum: all closed segments of the current epoch. */
export interface OwnSum {
  readonly sum: Blocks
  readonly count: number
  readonly coverage: Coverage
}

export class Ledger {
  readonly #buffers: Buffers
  readonly #carry: number
  readonly #contributors: readonly number[]
  #name: PredictorName
  #list: Segment[] = []
  readonly #sum: Float32Array[]
  #count = 0
  #open: Float32Array[]
  #openCount = 0
  /** Earlier epochs whose segments may still be carried, oldest first. */
  #epochs: Epoch[] = []
  #discarded = 0
  #turns = 0

  /**
   * @param carry periods for which an unused segment is kept, 0 for none
   * @param contributor the owner's number in coverages
   * @param name the predictor held at the start
   */
  constructor(buffers: Buffers, carry: number, contributor: number, name: PredictorName) {
    this.#buffers = buffers
    this.#carry = carry
    this.#contributors = [contributor]
    this.#name = name
    this.#sum = buffers.zeros()
    this.#open = buffers.zeros()
  }

  /** Where the learner adds gradients; `added` must follow. */
  get accumulator(): Blocks {
    return this.#open
  }

  /** Own gradients of this epoch, the open segment included. */
  get count(): number {
    return this.#count + this.#openCount
  }

  /** Own gradients that no lineage will use any more. */
  get discarded(): number {
    return this.#discarded
  }

  added(count: number): void {
    this.#openCount += count
  }

  /** All own gradients of this epoch, without closing the open segment. */
  total(): OwnSum {
    const sum = copyOf(this.#sum)
    addInto(sum, this.#open)
    return { sum, count: this.count, coverage: this.#coverage }
  }

  /** Closes the open segment and returns the epoch's sum. The blocks are the ledger's own: read them at once. */
  close(period: number): OwnSum {
    if (this.#openCount > 0) {
      addInto(this.#sum, this.#open)
      const keep = this.#carry > 0
      this.#list.push({
        sum: keep ? this.#open : undefined,
        count: this.#openCount,
        period,
        born: this.#name.updates,
        used: false,
        met: 0,
        metUsed: 0,
        metNearest: 0
      })
      if (keep) this.#open = this.#buffers.zeros()
      else clear(this.#open)
      this.#count += this.#openCount
      this.#openCount = 0
    }
    return { sum: this.#sum, count: this.#count, coverage: this.#coverage }
  }

  /**
   * Ends the epoch and starts the next one at `next`.
   * @param lineage headers of `next` and its ancestors, newest first, as far back as they are known
   */
  turn(next: PredictorName, lineage: readonly Header[], period: number): void {
    this.close(period)
    this.#epochs.push({ name: this.#name, segments: this.#list })
    const unused = this.#unused(lineage)
    this.#forget(period)
    this.#name = next
    this.#list = []
    clear(this.#sum)
    this.#count = 0
    if (this.#carry === 0) return
    for (const segment of unused) {
      if (period - segment.period > this.#carry) continue
      this.#list.push(segment)
      this.#count += segment.count
      if (segment.sum !== undefined) addInto(this.#sum, segment.sum)
    }
  }

  /** All closed segments. */
  get #coverage(): Coverage {
    const { length } = this.#list
    return { contributors: this.#contributors, segments: length === 0 ? [] : [length] }
  }

  /** Segments that `lineage` has certainly not used, oldest first; marks the others used. */
  #unused(lineage: readonly Header[]): Segment[] {
    const turn = ++this.#turns
    const known = this.#markUsed(lineage, turn)
    const result: Segment[] = []
    for (const { segments } of this.#epochs) {
      for (const segment of segments) {
        if (segment.met === turn) continue
        segment.met = turn
        segment.used = segment.metUsed === turn || (segment.born < known && segment.metNearest !== turn)
        if (!segment.used) result.push(segment)
      }
    }
    return result.sort((a, b) => a.born - b.born || a.period - b.period)
  }

  /**
   * Marks what the lineage's batches used.
   * @returns updates of the oldest known parent. Below it the lineage is unknown. What was carried into an epoch on the
   *   lineage is known to have been unused up to there; any other gradient taken below the known part counts as used
   */
  #markUsed(lineage: readonly Header[], turn: number): number {
    let oldest = Number.POSITIVE_INFINITY
    for (const { name } of this.#epochs) oldest = Math.min(oldest, name.updates)
    let nearest = true
    for (const header of lineage) {
      if (header.parent.updates < oldest) break
      const epoch = this.#epochs.find(candidate => sameName(candidate.name, header.parent))
      if (epoch === undefined) continue
      const prefix = Math.min(segmentsOf(header.coverage, this.#contributors[0]), epoch.segments.length)
      for (let i = 0; i < prefix; i++) epoch.segments[i].metUsed = turn
      if (nearest) for (const segment of epoch.segments) segment.metNearest = turn
      nearest = false
    }
    return lineage[lineage.length - 1]?.parent.updates ?? Number.POSITIVE_INFINITY
  }

  /** Lets go of segments that are too old to be carried, and of epochs without any other. */
  #forget(period: number): void {
    const expired = (segment: Segment) => this.#carry === 0 || period - segment.period > this.#carry
    const gone = this.#epochs.filter(({ segments }) => segments.every(expired))
    if (gone.length === 0) return
    this.#epochs = this.#epochs.filter(epoch => !gone.includes(epoch))
    const turn = ++this.#turns
    for (const { segments } of this.#epochs) for (const segment of segments) segment.met = turn
    for (const { segments } of gone) {
      for (const segment of segments) {
        if (segment.met === turn) continue
        segment.met = turn
        if (!segment.used) this.#discarded += segment.count
        if (segment.sum !== undefined) this.#buffers.give(segment.sum)
      }
    }
  }
}

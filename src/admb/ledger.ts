/**
 * A node's own gradients. While it holds one predictor (an epoch) they form an ordered list of segments; a segment closes
 * whenever a sum is sent, so that any sum anywhere covers a prefix of the list. When the node turns to another predictor,
 * the headers on that predictor's lineage tell which segments are used up; the others, while they are young enough, start
 * the next epoch's list. So no gradient is wasted and none is used twice on any lineage. With `carry` 0 every epoch starts
 * empty, which is the algorithm as published.
 */
import type { Blocks } from '../learner/types.js'
import type { BufferPool } from './buffers.js'
import { type Coverage, segmentsOf } from './coverage.js'
import type { Header } from './predictor.js'
import { type PredictorId, sameId } from './predictor-id.js'
import { addInto, clear, copyOf } from './vectors.js'

/** Consecutive own gradients that were closed together. */
interface Segment {
  /** Undefined with carry 0: nothing will ask for it again. */
  readonly sum: Blocks | undefined
  readonly count: number
  /** The period in which it was closed. */
  readonly period: number
  /** Updates of the predictor at which its gradients were taken. */
  readonly updates: number
  /** Whether the lineage of the predictor held now has used it. */
  used: boolean
  /** How many epochs have it on their lists. */
  epochs: number
}

/** A time in which one predictor was held, with its list: what was carried into it, then what was closed in it, oldest first. */
interface Epoch {
  readonly id: PredictorId
  readonly segments: readonly Segment[]
  /** How many of the segments were carried into it. */
  readonly carried: number
}

/** The own part of a sum: all closed segments of the current epoch. */
export interface LocalSum {
  readonly sum: Blocks
  readonly count: number
  readonly coverage: Coverage
}

export class Ledger {
  readonly #buffers: BufferPool
  readonly #carry: number
  readonly #contributors: readonly number[]
  #id: PredictorId
  #list: Segment[] = []
  /** How many of the list were carried into this epoch. */
  #carried = 0
  readonly #sum: Float32Array[]
  #count = 0
  #openSum: Float32Array[]
  #openCount = 0
  /** Earlier epochs whose segments may still be carried, oldest first. */
  #epochs: Epoch[] = []
  #discarded = 0

  /**
   * @param carry periods for which an unused segment is kept, 0 for none
   * @param contributor the owner's number in coverages
   * @param id the predictor held at the start
   */
  constructor(buffers: BufferPool, carry: number, contributor: number, id: PredictorId) {
    this.#buffers = buffers
    this.#carry = carry
    this.#contributors = [contributor]
    this.#id = id
    this.#sum = buffers.zeros()
    this.#openSum = buffers.zeros()
  }

  /** Where the learner adds gradients; `added` must follow. */
  get accumulator(): Blocks {
    return this.#openSum
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
  total(): LocalSum {
    const sum = copyOf(this.#sum)
    addInto(sum, this.#openSum)
    return { sum, count: this.count, coverage: this.#coverage }
  }

  /** One block of that total. */
  totalBlock(block: number): Float32Array {
    const sum = this.#sum[block].slice()
    const open = this.#openSum[block]
    for (let i = 0; i < sum.length; i++) sum[i] += open[i]
    return sum
  }

  /** Closes the open segment and returns the epoch's sum. The blocks are the ledger's own: read them at once. */
  close(period: number): LocalSum {
    if (this.#openCount > 0) {
      addInto(this.#sum, this.#openSum)
      const keep = this.#carry > 0
      this.#list.push({
        sum: keep ? this.#openSum : undefined,
        count: this.#openCount,
        period,
        updates: this.#id.updates,
        used: false,
        epochs: 1
      })
      if (keep) this.#openSum = this.#buffers.zeros()
      else clear(this.#openSum)
      this.#count += this.#openCount
      this.#openCount = 0
    }
    return { sum: this.#sum, count: this.#count, coverage: this.#coverage }
  }

  /**
   * Ends the epoch and starts the next one at `next`.
   * @param lineage headers of `next` and its ancestors, newest first, as far back as they are known
   */
  switchPredictor(next: PredictorId, lineage: readonly Header[], period: number): void {
    this.close(period)
    this.#epochs.push({ id: this.#id, segments: this.#list, carried: this.#carried })
    const unused = this.#unused(lineage)
    this.#dropExpiredEpochs(period)
    this.#id = next
    this.#list = unused.filter(segment => !this.#isExpired(segment, period))
    this.#carried = this.#list.length
    clear(this.#sum)
    this.#count = 0
    for (const segment of this.#list) {
      segment.epochs++
      this.#count += segment.count
      if (segment.sum !== undefined) addInto(this.#sum, segment.sum)
    }
  }

  /** All closed segments. */
  get #coverage(): Coverage {
    const { length } = this.#list
    return { contributors: this.#contributors, segments: length === 0 ? [] : [length] }
  }

  /**
   * Segments that `lineage` has certainly not used, oldest first; marks them and the others. The newest epoch on the lineage
   * decides: the child of its predictor used a prefix of its list, what came before was settled when the list was made, and
   * no gradient that was taken later can be on the lineage.
   */
  #unused(lineage: readonly Header[]): Segment[] {
    const unused: Segment[] = []
    const [newest, used] = this.#newestEpochOn(lineage)
    // Off the known lineage whatever was taken at a predictor older than its oldest may have been used, and counts as used.
    const known = lineage[lineage.length - 1]?.parent.updates ?? Number.POSITIVE_INFINITY
    const first = Math.max(newest, 0)
    for (let e = first; e < this.#epochs.length; e++) {
      const { segments, carried } = this.#epochs[e]
      // What was carried into a later epoch stands on an earlier list.
      for (let i = e === first ? 0 : carried; i < segments.length; i++) {
        const segment = segments[i]
        segment.used = e === newest ? i < used : newest < 0 && segment.updates < known
        if (!segment.used) unused.push(segment)
      }
    }
    return unused
  }

  /** @returns the newest epoch on the lineage, or −1, and how many segments of its list the lineage used */
  #newestEpochOn(lineage: readonly Header[]): [epoch: number, used: number] {
    const oldest = this.#epochs[0].id.updates
    for (const { parent, coverage } of lineage) {
      if (parent.updates < oldest) break
      for (let e = this.#epochs.length - 1; e >= 0; e--) {
        if (sameId(this.#epochs[e].id, parent)) return [e, segmentsOf(coverage, this.#contributors[0])]
      }
    }
    return [-1, 0]
  }

  #isExpired({ period }: Segment, now: number): boolean {
    return this.#carry === 0 || now - period > this.#carry
  }

  /** Lets go of the oldest epochs, as long as all of their segments are too old to be carried. */
  #dropExpiredEpochs(period: number): void {
    let expired = 0
    for (; expired < this.#epochs.length; expired++) {
      // A list is in the order of time.
      const newest = this.#epochs[expired].segments.at(-1)
      if (newest !== undefined && !this.#isExpired(newest, period)) break
      for (const segment of this.#epochs[expired].segments) {
        if (--segment.epochs > 0) continue
        if (!segment.used) this.#discarded += segment.count
        if (segment.sum !== undefined) this.#buffers.give(segment.sum)
      }
    }
    if (expired > 0) this.#epochs = this.#epochs.slice(expired)
  }
}

/**
 * A node's own gradients. While the node holds one predictor (an epoch), its gradients form an ordered list of segments. A
 * segment is closed whenever a sum is sent, so every sum in the network covers a prefix of the list. When the node switches
 * to another predictor, the headers on that predictor's lineage determine which segments have been used; the others are
 * carried over to the next epoch's list unless they are too old. No gradient is used twice on any lineage. With `carry` 0
 * every epoch starts empty, which is the published algorithm.
 *
 * Memory: the epoch's sum, the open segment, and a vector for each segment that can still be carried over, `maxRetainedSums` at
 * most. A segment that cannot be carried over any more remains in the epoch's sum only.
 */
import type { Blocks } from '../learner/types.js'
import { type Coverage, segmentsOf } from './coverage.js'
import type { Header } from './predictor.js'
import { type PredictorId, sameId } from './predictor-id.js'
import { addInto, type BufferPool, clear, copyOf } from './vectors.js'

/** Segments closed within a period that keep a vector of their own, beyond one a period. Headers of as many updates are kept. */
const BURST = 64

/** Bound of `retainedSums`. @param carry S, at least 1 */
export function maxRetainedSums(carry: number): number {
  return carry + 1 + BURST
}

/** Consecutive own gradients that were closed together. */
interface Segment {
  /** Undefined once the segment cannot be carried over any more: at once with carry 0. */
  sum: Blocks | undefined
  readonly count: number
  /** Period in which the segment was closed. */
  readonly period: number
  /** Number of updates of the predictor at which the gradients were taken. */
  readonly updates: number
  /** Whether the lineage of the current predictor has used the segment. */
  used: boolean
  /** Number of epochs whose lists contain the segment. */
  epochs: number
}

/** The time during which one predictor was held, with its list: segments carried over, then segments closed, oldest first. */
interface Epoch {
  readonly id: PredictorId
  readonly segments: readonly Segment[]
  /** Number of segments that were carried over. */
  readonly carried: number
}

/** This node's contribution to a sum: all closed segments of the current epoch. */
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
  /** Number of segments carried over into this epoch. */
  #carried = 0
  readonly #sum: Float32Array[]
  #count = 0
  #openSum: Float32Array[]
  #openCount = 0
  /** Earlier epochs whose segments can still be carried over, oldest first. */
  #epochs: Epoch[] = []
  /** Segments with a sum, oldest first. */
  readonly #retained: Segment[] = []
  #discarded = 0

  /**
   * @param carry S: number of periods for which unused segments are kept, 0 for none
   * @param contributor index of this node in coverages
   * @param id the initial predictor
   */
  constructor(buffers: BufferPool, carry: number, contributor: number, id: PredictorId) {
    this.#buffers = buffers
    this.#carry = carry
    this.#contributors = [contributor]
    this.#id = id
    this.#sum = buffers.zeros()
    this.#openSum = buffers.zeros()
  }

  /** Blocks to which the learner adds gradients; `added` must follow. */
  get accumulator(): Blocks {
    return this.#openSum
  }

  /** Number of own gradients of this epoch, including the open segment. */
  get count(): number {
    return this.#count + this.#openCount
  }

  /** Number of own gradients that were dropped unused. */
  get discarded(): number {
    return this.#discarded
  }

  /** Number of segments with a vector of their own. */
  get retainedSums(): number {
    return this.#retained.length
  }

  /** Period in which the oldest of these was closed; undefined if there is none. */
  get oldestRetained(): number | undefined {
    return this.#retained[0]?.period
  }

  added(count: number): void {
    this.#openCount += count
  }

  /** Sum of all own gradients of this epoch, without closing the open segment. */
  total(): LocalSum {
    const sum = copyOf(this.#sum)
    addInto(sum, this.#openSum)
    return { sum, count: this.count, coverage: this.#coverage }
  }

  /** One block of `total`. */
  totalBlock(block: number): Float32Array {
    const sum = this.#sum[block].slice()
    const open = this.#openSum[block]
    for (let i = 0; i < sum.length; i++) sum[i] += open[i]
    return sum
  }

  /** Closes the open segment and returns the epoch's sum. The blocks are valid until the next call. */
  close(period: number): LocalSum {
    if (this.#openCount > 0) {
      addInto(this.#sum, this.#openSum)
      const isRetained = this.#carry > 0
      const segment = {
        sum: isRetained ? this.#openSum : undefined,
        count: this.#openCount,
        period,
        updates: this.#id.updates,
        used: false,
        epochs: 1
      }
      this.#list.push(segment)
      if (isRetained) {
        this.#retained.push(segment)
        this.#openSum = this.#buffers.zeros()
        this.releaseSums(period)
      } else clear(this.#openSum)
      this.#count += this.#openCount
      this.#openCount = 0
    }
    return { sum: this.#sum, count: this.#count, coverage: this.#coverage }
  }

  /**
   * Ends the epoch and starts the next one.
   * @param lineage headers of `next` and its ancestors, newest first, as far as they are known
   */
  switchPredictor(next: PredictorId, lineage: readonly Header[], period: number): void {
    this.close(period)
    this.#epochs.push({ id: this.#id, segments: this.#list, carried: this.#carried })
    const unused = this.#unused(lineage)
    this.releaseSums(period)
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

  /** Covers all closed segments. */
  get #coverage(): Coverage {
    const { length } = this.#list
    return { contributors: this.#contributors, segments: length === 0 ? [] : [length] }
  }

  /**
   * Segments that `lineage` has certainly not used, oldest first; marks all segments as used or not. The newest own epoch on
   * the lineage decides: the child of its predictor used a prefix of its list, earlier segments were settled when the list
   * was created, and later gradients cannot be on the lineage.
   */
  #unused(lineage: readonly Header[]): Segment[] {
    const unused: Segment[] = []
    const [newest, used] = this.#newestEpochOn(lineage)
    // If no own epoch is on the known lineage, gradients taken before its oldest parent may have been used: count them as used.
    const known = lineage[lineage.length - 1]?.parent.updates ?? Number.POSITIVE_INFINITY
    const first = Math.max(newest, 0)
    for (let e = first; e < this.#epochs.length; e++) {
      const { segments, carried } = this.#epochs[e]
      // Segments carried over into a later epoch are on an earlier list as well.
      for (let i = e === first ? 0 : carried; i < segments.length; i++) {
        const segment = segments[i]
        segment.used = e === newest ? i < used : newest < 0 && segment.updates < known
        if (!segment.used) unused.push(segment)
      }
    }
    return unused
  }

  /** @returns the newest own epoch on the lineage (−1 for none), and how many segments of its list were used */
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

  #isExpired({ sum, period }: Segment, now: number): boolean {
    return sum === undefined || now - period > this.#carry
  }

  /** Releases the vectors of segments that cannot be carried over any more. */
  releaseSums(period: number): void {
    let released = 0
    for (const segment of this.#retained) {
      const isExcess = this.#retained.length - released > maxRetainedSums(this.#carry)
      if (!isExcess && !this.#isExpired(segment, period)) break
      released++
      this.#buffers.give(segment.sum as Blocks)
      segment.sum = undefined
    }
    if (released > 0) this.#retained.splice(0, released)
  }

  /** Drops the oldest epochs as long as all of their segments are too old to be carried over. */
  #dropExpiredEpochs(period: number): void {
    let expired = 0
    for (; expired < this.#epochs.length; expired++) {
      // Lists are in chronological order.
      const newest = this.#epochs[expired].segments.at(-1)
      if (newest !== undefined && !this.#isExpired(newest, period)) break
      for (const segment of this.#epochs[expired].segments) {
        if (--segment.epochs === 0 && !segment.used) this.#discarded += segment.count
      }
    }
    if (expired > 0) this.#epochs = this.#epochs.slice(expired)
  }
}

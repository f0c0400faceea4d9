/**
 * Encoding state of one edge session: the dictionary of contributors, whose indices stand for them
 * in frames, and the coverages of the sums sent, which are the bases of later differences.
 */
import { type Coverage, changedRuns, IndexSet, type Runs } from '../state/coverage.js'
import { FRAME_LIMITS } from './frame.js'

/** Limits of the coverages kept as bases in each direction. Two are kept whatever their length. */
export const MAX_BASES = 64
export const MAX_BASE_LENGTH = 1 << 20
const MIN_BASES = 2

/** Maximum length of lists of contributors that are kept however many contributors have left. */
export const LONG_LIST = 256
/** Number of epochs after which the unused entries of long lists are counted. */
const EPOCHS = 16

/** Finds lists of contributors of which fewer than half were in the sums of recent epochs. */
export class RecentUse {
  readonly #used = new IndexSet()
  #count = 0
  #epochs = 0

  /**
   * Whether the list should be replaced. Call it at the end of each epoch.
   * @param length of the list
   * @param runs of the last sum
   */
  isStale(length: number, runs: Runs): boolean {
    if (length <= LONG_LIST) return false
    let position = 0
    for (let r = 0; r < runs.length; r += 3) {
      position += runs[r]
      for (const end = position + runs[r + 1]; position < end; position++) if (this.#used.add(position)) this.#count++
    }
    if (++this.#epochs < EPOCHS) return false
    const count = this.#count
    this.clear()
    return 2 * count < length
  }

  /** The list has been replaced. */
  clear(): void {
    this.#used.clear()
    this.#count = 0
    this.#epochs = 0
  }
}

export interface Base {
  /** Sequence number of the sum, 0 for none. */
  readonly sequence: number
  /** Runs of its coverage by dictionary index. */
  readonly runs: Runs
}

const NO_BASE: Base = { sequence: 0, runs: [] }
const NO_CONTRIBUTORS: readonly number[] = []
/** Scratch memory of `runs`: segments by dictionary index, which are 0 between calls. */
let scratch = new Uint32Array(64)
/**
 * The runs that it returns, before they are copied: an array that grows while it is filled would be
 * copied several times.
 */
const result: number[] = []

export class CoverageEncoder {
  /** Contributors by dictionary index. */
  #dictionary: number[] = []
  /** Dictionary indices by contributor, each plus 1; 0 for none. */
  #indices = new Uint32Array(4)
  /** Number of entries that the neighbour has acknowledged. */
  #acknowledged = 0
  /** Frames that are not acknowledged, and the number of entries defined up to each of them. */
  #unacknowledged: { readonly sequence: number; readonly size: number }[] = []
  #acknowledgedSum = 0
  #sent = this.#createWindow()
  /** Contributors that were defined without a certificate. */
  readonly bare = new Set<number>()
  #certified = 0
  readonly #use = new RecentUse()

  /** Number of dictionary entries. */
  get size(): number {
    return this.#dictionary.length
  }

  /** Sequence number of the sum that the neighbour holds for the current predictor, 0 for none. */
  get acknowledgedSum(): number {
    return this.#acknowledgedSum
  }

  /** Dictionary index of a contributor, which is added if it is new. */
  index(contributor: number): number {
    const known = this.#indices[contributor]
    if (known > 0) return known - 1
    if (contributor >= this.#indices.length) this.#indices = grown(this.#indices, contributor)
    this.#indices[contributor] = this.#dictionary.push(contributor)
    return this.#dictionary.length - 1
  }

  /** Union of pairwise disjoint coverages, by dictionary index. */
  runs(coverages: readonly Coverage[]): Runs {
    let [from, to] = [Number.POSITIVE_INFINITY, 0]
    for (const { contributors, runs } of coverages) {
      let position = 0
      for (let r = 0; r < runs.length; r += 3) {
        position += runs[r]
        for (const end = position + runs[r + 1]; position < end; position++) {
          const index = this.index(contributors[position])
          if (index >= scratch.length) scratch = grown(scratch, index)
          scratch[index] = runs[r + 2]
          if (index < from) from = index
          if (index >= to) to = index + 1
        }
      }
    }
    let [end, length] = [0, 0]
    for (let i = from; i < to; ) {
      const segments = scratch[i]
      const start = i
      while (i < to && scratch[i] === segments) scratch[i++] = 0
      if (segments === 0) continue
      result[length++] = start - end
      result[length++] = i - start
      result[length++] = segments
      end = i
    }
    return result.slice(0, length)
  }

  /** The entries that the frame with this sequence number must define, recorded as sent. */
  definitions(sequence: number): { readonly from: number; readonly contributors: readonly number[] } {
    const { length } = this.#dictionary
    const from = this.#acknowledged
    if (from < length) this.#unacknowledged.push({ sequence, size: length })
    return { from, contributors: from < length ? this.#dictionary.slice(from) : NO_CONTRIBUTORS }
  }

  /** The frame with this sequence number has arrived; earlier ones may have been lost. */
  acknowledge(sequence: number): void {
    while (this.#unacknowledged.length > 0 && this.#unacknowledged[0].sequence <= sequence) {
      const { sequence: sent, size } = this.#unacknowledged[0]
      if (sent === sequence) this.#acknowledged = size
      this.#unacknowledged.shift()
    }
  }

  /** Adds the contributors to which this end refers. */
  mark(live: Set<number>): void {
    for (const contributor of this.#dictionary) live.add(contributor)
  }

  /** Starts a new dictionary if this one may not have room for this many more entries. */
  makeRoom(entries: number): void {
    if (this.size + entries > FRAME_LIMITS.definitions) this.reset()
  }

  /**
   * Starts a new dictionary if a contributor that was defined without a certificate has one now.
   * @param certified changes whenever a certificate is added
   */
  renew(certified: number, isCertified: (contributor: number) => boolean): void {
    if (certified === this.#certified) return
    this.#certified = certified
    for (const contributor of this.bare) {
      if (!isCertified(contributor)) continue
      this.reset()
      return
    }
  }

  /** An epoch has ended. Starts a new dictionary if this one has many former contributors. */
  endEpoch(): void {
    if (this.#use.isStale(this.size, this.#sent.last ?? NO_BASE.runs)) this.reset()
  }

  /** Starts a new dictionary. */
  reset(): void {
    this.bare.clear()
    this.#use.clear()
    this.#dictionary = []
    this.#indices = new Uint32Array(4)
    this.#acknowledged = 0
    this.#unacknowledged = []
    this.#sent = this.#createWindow()
  }

  /**
   * A sum of this epoch as the base of a difference, if it is kept.
   * @default the newest sum that the neighbour has acknowledged
   */
  base(sequence = this.#acknowledgedSum): Base {
    const runs = this.#sent.get(sequence)
    return runs === undefined ? NO_BASE : { sequence, runs }
  }

  /** @param runs of the sum sent */
  recordSent(sequence: number, runs: Runs): void {
    this.#sent.add(sequence, runs)
  }

  acknowledgeSum(sequence: number): void {
    if (sequence === this.#acknowledgedSum) return
    this.#acknowledgedSum = sequence
    this.#sent.evictBefore(sequence)
  }

  #createWindow(): SequenceWindow<Runs> {
    return new SequenceWindow(MAX_BASES, { sizeOf: runs => runs.length, maxSize: MAX_BASE_LENGTH })
  }
}

/** Encodes with the dictionary that all edges have in common: `ContributorTable.dictionary`. */
export class CommonCoverageEncoder extends CoverageEncoder {
  readonly #common: readonly number[]

  constructor(dictionary: readonly number[]) {
    super()
    this.#common = dictionary
  }

  override runs(coverages: readonly Coverage[]): Runs {
    let runs: Runs = []
    for (const coverage of coverages)
      runs = changedRuns(runs, coverage.contributors === this.#common ? coverage.runs : super.runs([coverage]))
    return runs
  }

  override index(contributor: number): number {
    return contributor
  }
}

function grown(array: Uint32Array, index: number): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(Math.max(index + 1, 2 * array.length))
  larger.set(array)
  return larger
}

interface WindowOptions<T> {
  /** Size of a value, which must not change. */
  readonly sizeOf?: (item: T) => number
  /** Maximum total size of more than two values. */
  readonly maxSize?: number
}

/** Values of the last few sequence numbers, ascending. Two or three are common. */
export class SequenceWindow<T> {
  readonly #capacity: number
  readonly #options: WindowOptions<T>
  readonly #sequences: number[] = []
  readonly #items: T[] = []
  #size = 0

  /** @param capacity maximum number of values; the oldest are evicted */
  constructor(capacity: number, options: WindowOptions<T> = {}) {
    this.#capacity = capacity
    this.#options = options
  }

  add(sequence: number, item: T): void {
    const { sizeOf, maxSize = Number.POSITIVE_INFINITY } = this.#options
    this.#sequences.push(sequence)
    this.#items.push(item)
    this.#size += sizeOf?.(item) ?? 0
    while (this.#items.length > this.#capacity || (this.#size > maxSize && this.#items.length > MIN_BASES))
      this.#evictFirst()
  }

  get(sequence: number): T | undefined {
    for (let i = this.#sequences.length - 1; i >= 0; i--) if (this.#sequences[i] === sequence) return this.#items[i]
    return undefined
  }

  /** The newest value. */
  get last(): T | undefined {
    return this.#items.at(-1)
  }

  /** The highest sequence number up to `limit`, 0 for none. */
  newest(limit: number): number {
    for (let i = this.#sequences.length - 1; i >= 0; i--) if (this.#sequences[i] <= limit) return this.#sequences[i]
    return 0
  }

  /** Whether a value of this size has room without the loss of one from `from` on. */
  hasRoom(size: number, from: number): boolean {
    const { sizeOf, maxSize = Number.POSITIVE_INFINITY } = this.#options
    const items = this.#items.filter((_, i) => this.#sequences[i] >= from)
    if (items.length < MIN_BASES) return true
    const total = items.reduce((sum, item) => sum + (sizeOf?.(item) ?? 0), size)
    return items.length < this.#capacity && total <= maxSize
  }

  /** Total size of the values. */
  get size(): number {
    return this.#size
  }

  values(): readonly T[] {
    return this.#items
  }

  evictBefore(sequence: number): void {
    while (this.#sequences.length > 0 && this.#sequences[0] < sequence) this.#evictFirst()
  }

  #evictFirst(): void {
    this.#sequences.shift()
    const item = this.#items.shift() as T
    this.#size -= this.#options.sizeOf?.(item) ?? 0
  }
}

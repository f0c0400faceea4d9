/**
 * A gradient sum carries its coverage: which contributors' gradients it includes, and how many
 * segments of each contributor's list for the current predictor (always a prefix). Only sums with
 * disjoint coverages are added, so every gradient counts at most once on any graph, even while the
 * tree is being rewired. Two runs of one peer are not disjoint, so a sum has no more contributors
 * than peers.
 *
 * A contributor of gradients is a node in one of its runs. Coverages refer to contributors so often
 * that each node interns them: coverages hold indices into its table. Contributors that are no
 * longer referenced are removed, so the table does not grow with the number of restarts in the
 * network.
 */
import type { PredictorId } from './predictor-id.js'

/**
 * Segments by position in a list, as triples: number of positions before the run, length of the
 * run, and the number of segments that every position in it has, or the change of that number.
 * Numbers are not 0. Nodes close segments at the same pace, so a whole subtree is often a single
 * run.
 */
export type Runs = readonly number[]

/** All sums received over one edge share one list of contributors. Immutable. */
export interface Coverage {
  /** Indices of distinct contributors, in any order. Some may not be covered, except in headers. */
  readonly contributors: readonly number[]
  /** Number of covered segments by position in `contributors`. */
  readonly runs: Runs
  /** Number of covered contributors. */
  readonly size: number
}

export const NO_COVERAGE: Coverage = { contributors: [], runs: [], size: 0 }

/**
 * @param segments number of covered segments of the contributor at the same position, 0 for none
 */
export function coverageOf(contributors: readonly number[], segments: readonly number[]): Coverage {
  const runs: number[] = []
  const at = contributors.filter((_, i) => segments[i] > 0)
  for (const covered of segments) if (covered > 0) appendRun(runs, 0, 1, covered)
  return { contributors: at, runs, size: at.length }
}

/** The covered contributors, each with the number of its segments. */
export function entriesOf({ contributors, runs }: Coverage): [contributor: number, segments: number][] {
  const entries: [number, number][] = []
  let position = 0
  for (let r = 0; r < runs.length; r += 3) {
    position += runs[r]
    for (const end = position + runs[r + 1]; position < end; position++)
      entries.push([contributors[position], runs[r + 2]])
  }
  return entries
}

/** Number of covered segments of a contributor, 0 for none. */
export function segmentsOf({ contributors, runs }: Coverage, contributor: number): number {
  let position = 0
  for (let r = 0; r < runs.length; r += 3) {
    position += runs[r]
    for (const end = position + runs[r + 1]; position < end; position++)
      if (contributors[position] === contributor) return runs[r + 2]
  }
  return 0
}

/** The contributors with at least one covered segment. */
export function covered(coverage: Coverage): number[] {
  return entriesOf(coverage).map(([contributor]) => contributor)
}

/** Total number of covered segments. */
export function segmentCount({ runs }: Coverage): number {
  let count = 0
  for (let r = 0; r < runs.length; r += 3) count += runs[r + 1] * runs[r + 2]
  return count
}

/** Number of positions in the runs. */
export function lengthOf(runs: Runs): number {
  let length = 0
  for (let r = 1; r < runs.length; r += 3) length += runs[r]
  return length
}

/**
 * Whether no peer has contributed to both, in any of its runs.
 * @param peerOf number of the peer of a contributor
 */
export function areDisjoint(a: Coverage, b: Coverage, peerOf: (contributor: number) => number): boolean {
  const coveredByA = new Set(covered(a).map(peerOf))
  return !covered(b).some(contributor => coveredByA.has(peerOf(contributor)))
}

/** Union of pairwise disjoint coverages, with a list of its own. */
export function union(coverages: readonly Coverage[]): Coverage {
  const entries = coverages.flatMap(entriesOf)
  return coverageOf(
    entries.map(([contributor]) => contributor),
    entries.map(([, segments]) => segments)
  )
}

/**
 * Appends a run, or extends the last one if it has the same number.
 * @param gap positions since the last run
 */
export function appendRun(runs: number[], gap: number, length: number, number: number): void {
  const last = runs.length - 3
  if (gap === 0 && last >= 0 && runs[last + 2] === number) runs[last + 1] += length
  else runs.push(gap, length, number)
}

/** The change that turns `base` into `next`. */
export function runsBetween(base: Runs, next: Runs): Runs {
  return base.length === 0 ? next : combined(next, base, -1)
}

/** The runs after a change. The numbers may be negative if the change is not one of these runs. */
export function changedRuns(base: Runs, change: Runs): Runs {
  return base.length === 0 ? change : combined(base, change, 1)
}

/**
 * Scratch memory of `combined`: an array that grows while it is filled would be copied several
 * times.
 */
const scratch: number[] = []

/** A position beyond all lists. */
const NEVER = 2 ** 30

/** Adds `sign` times the numbers of `b` to those of `a`. */
function combined(a: Runs, b: Runs, sign: number): Runs {
  let [i, j, length] = [0, 0, 0]
  // The run of each list at or after the position.
  let startA = a.length > 0 ? a[0] : NEVER
  let startB = b.length > 0 ? b[0] : NEVER
  let endA = a.length > 0 ? startA + a[1] : NEVER
  let endB = b.length > 0 ? startB + b[1] : NEVER
  let end = 0
  let position = Math.min(startA, startB)
  while (position < NEVER) {
    const isInA = startA <= position
    const isInB = startB <= position
    const until = Math.min(isInA ? endA : startA, isInB ? endB : startB)
    const number = (isInA ? a[i + 2] : 0) + (isInB ? sign * b[j + 2] : 0)
    if (number !== 0) {
      if (position === end && length > 0 && scratch[length - 1] === number) scratch[length - 2] += until - position
      else {
        scratch[length++] = position - end
        scratch[length++] = until - position
        scratch[length++] = number
      }
      end = until
    }
    if (until === endA) {
      i += 3
      startA = i < a.length ? endA + a[i] : NEVER
      endA = i < a.length ? startA + a[i + 1] : NEVER
    }
    if (until === endB) {
      j += 3
      startB = j < b.length ? endB + b[j] : NEVER
      endB = j < b.length ? startB + b[j + 1] : NEVER
    }
    position = startA <= until || startB <= until ? until : Math.min(startA, startB)
  }
  return scratch.slice(0, length)
}

/** A set of small numbers, such as indices of contributors, in one bit each. */
export class IndexSet {
  #words = new Uint32Array(2)

  has(index: number): boolean {
    return (this.#words[index >>> 5] & (1 << (index & 31))) !== 0
  }

  /** Whether the number has been added now. */
  add(index: number): boolean {
    const word = index >>> 5
    if (word >= this.#words.length) {
      const words = new Uint32Array(Math.max(word + 1, 2 * this.#words.length))
      words.set(this.#words)
      this.#words = words
    }
    const before = this.#words[word]
    this.#words[word] |= 1 << (index & 31)
    return this.#words[word] !== before
  }

  delete(index: number): void {
    this.#words[index >>> 5] &= ~(1 << (index & 31))
  }

  clear(): void {
    this.#words = new Uint32Array(2)
  }
}

/** One node in one run. */
export interface Contributor {
  readonly origin: string
  readonly incarnation: number
  readonly nonce: number
}

/** A contributor in a sum, with the number of its segments there: the first ones of its list. */
export interface CoveredContributor extends Contributor {
  readonly segments: number
}

/** Assigns indices to contributors; the lowest free one first. */
export class ContributorTable {
  /** Indices of the runs of each origin. */
  readonly #runs = new Map<string, number[]>()
  readonly #contributors: (Contributor | undefined)[] = []
  /** Index of the first known run of the same origin, by index. */
  readonly #firstRuns: number[] = []
  /** Verified certificates by index. */
  readonly #certificates: (Uint8Array | undefined)[] = []
  /** Number of certificates ever added. */
  #certified = 0
  /** Indices that are free again. */
  #free: number[] = []
  /** Cache of the last lookup: a frame refers to the origin of its predictor several times. */
  #lastIndex = -1
  /** Cache of the last lookup of `indexOfOrigin`. */
  #lastId: PredictorId | undefined
  #lastOrigin = -1

  /** Number of contributors. */
  get size(): number {
    return this.#contributors.length - this.#free.length
  }

  /** Index of the contributor, which is added if it is new. */
  indexOf({ origin, incarnation, nonce }: Contributor): number {
    if (this.#isAt(this.#lastIndex, origin, incarnation, nonce)) return this.#lastIndex
    let runs = this.#runs.get(origin)
    let index = runs?.find(run => this.#isAt(run, origin, incarnation, nonce))
    if (index === undefined) {
      index = this.#free.pop() ?? this.#contributors.length
      this.#contributors[index] = { origin, incarnation, nonce }
      if (runs === undefined) {
        runs = []
        this.#runs.set(origin, runs)
      }
      runs.push(index)
      this.#firstRuns[index] = runs[0]
    }
    this.#lastIndex = index
    return index
  }

  /** Index of the contributor that computed a predictor; −1 for the starting predictor. */
  indexOfOrigin(id: PredictorId): number {
    if (id !== this.#lastId) {
      this.#lastId = id
      this.#lastOrigin = id.updates > 0 ? this.indexOf(id) : -1
    }
    return this.#lastOrigin
  }

  contributor(index: number): Contributor {
    const found = this.#contributors[index]
    if (found === undefined) throw new RangeError(`no contributor with index ${index}`)
    return found
  }

  /** A number below `limit` that a peer's runs have in common, until contributors are removed. */
  peerOf(index: number): number {
    return this.#firstRuns[index]
  }

  /** Upper bound of indices. */
  get limit(): number {
    return this.#contributors.length
  }

  /**
   * Each contributor at its own index, which is the dictionary of all edges, if all nodes share the table and no frame leaves the
   * process. Frames then contain no definitions.
   * @default each edge has its own dictionary
   */
  get dictionary(): number[] | undefined {
    return undefined
  }

  /** An equal coverage. A table that nodes of a process share returns the same object to all. */
  intern(coverage: Coverage): Coverage {
    return coverage
  }

  /** Number of certificates ever added, which shows whether there are new ones. */
  get certified(): number {
    return this.#certified
  }

  /** The verified certificate of a contributor, by which its peer confirms the run. */
  certificate(index: number): Uint8Array | undefined {
    return this.#certificates[index]
  }

  certify(index: number, certificate: Uint8Array): void {
    this.#certificates[index] = certificate
    this.#certified++
  }

  /** Removes all contributors but these. Their indices are assigned again. */
  retain(live: ReadonlySet<number>): void {
    this.#lastIndex = -1
    this.#lastId = undefined
    this.#free = []
    for (let index = this.#contributors.length - 1; index >= 0; index--) {
      if (live.has(index)) continue
      this.#free.push(index)
      const removed = this.#contributors[index]
      if (removed === undefined) continue
      this.#contributors[index] = undefined
      this.#certificates[index] = undefined
      const runs = (this.#runs.get(removed.origin) ?? []).filter(run => run !== index)
      if (runs.length > 0) this.#runs.set(removed.origin, runs)
      else this.#runs.delete(removed.origin)
      for (const run of runs) this.#firstRuns[run] = runs[0]
    }
  }

  #isAt(index: number, origin: string, incarnation: number, nonce: number): boolean {
    const found = this.#contributors[index]
    return found?.origin === origin && found.incarnation === incarnation && found.nonce === nonce
  }
}

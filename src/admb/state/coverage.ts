/**
 * A gradient sum carries its coverage: which contributors' gradients it includes, and how many segments of each contributor's
 * list for the current predictor (always a prefix). Only sums with disjoint coverages are added, so every gradient counts at
 * most once on any graph, even while the tree is being rewired. Two runs of one peer are not disjoint, so a sum has no more
 * contributors than peers.
 *
 * A contributor of gradients is a node in one of its runs. Coverages refer to contributors so often that each node interns them:
 * coverages hold indices into its table. Contributors that are no longer referenced are removed, so the table does not grow with
 * the number of restarts in the network.
 */
import type { PredictorId } from './predictor-id.js'

/**
 * Immutable. All sums received over one edge share one append-only list of contributors, so comparing two of them means
 * comparing numbers at equal positions.
 */
export interface Coverage {
  /** Indices of distinct contributors, in any order; may be longer than `segments`. */
  readonly contributors: readonly number[]
  /** Number of covered segments of the contributor at the same position, 0 for none. */
  readonly segments: readonly number[]
}

/**
 * Run-length-encoded difference between two lists of segments, as triples: number of unchanged positions, length of the
 * run that follows, and the change of every position in the run. Nodes close segments at the same pace, so a whole
 * subtree is often a single triple.
 */
export type Runs = readonly number[]

/** Number of covered segments of a contributor, 0 for none. */
export function segmentsOf({ contributors, segments }: Coverage, contributor: number): number {
  for (let i = 0; i < segments.length; i++) if (contributors[i] === contributor) return segments[i]
  return 0
}

/** The contributors with at least one covered segment. */
export function covered({ contributors, segments }: Coverage): number[] {
  return contributors.filter((_, i) => segments[i] > 0)
}

/** Number of these contributors. */
export function contributorCount({ segments }: Coverage): number {
  let count = 0
  for (let i = 0; i < segments.length; i++) if (segments[i] > 0) count++
  return count
}

/** Whether no peer has contributed to both, in any of its runs. @param peerOf number of the peer of a contributor */
export function disjoint(a: Coverage, b: Coverage, peerOf: (contributor: number) => number): boolean {
  const coveredByA = new Set(covered(a).map(peerOf))
  return !covered(b).some(contributor => coveredByA.has(peerOf(contributor)))
}

/** Union of pairwise disjoint coverages, with a list of its own. */
export function union(coverages: readonly Coverage[]): Coverage {
  const contributors: number[] = []
  const segments: number[] = []
  for (const coverage of coverages) {
    for (let i = 0; i < coverage.segments.length; i++) {
      if (coverage.segments[i] === 0) continue
      contributors.push(coverage.contributors[i])
      segments.push(coverage.segments[i])
    }
  }
  return { contributors, segments }
}

/** The runs that turn `base` into `next`; missing positions count as 0. */
export function runsBetween(base: readonly number[], next: readonly number[]): Runs {
  const runs: number[] = []
  const length = Math.max(base.length, next.length)
  let end = 0
  for (let i = 0; i < length; ) {
    const change = changeAt(base, next, i)
    const start = i++
    if (change === 0) continue
    while (i < length && changeAt(base, next, i) === change) i++
    runs.push(start - end, i - start, change)
    end = i
  }
  return runs
}

function changeAt(base: readonly number[], next: readonly number[], i: number): number {
  return (i < next.length ? next[i] : 0) - (i < base.length ? base[i] : 0)
}

/** One node in one run. */
export interface Contributor {
  readonly origin: string
  readonly incarnation: number
  readonly nonce: number
}

/** Whether two contributors are the same peer in the same run. */
export function isSameRun(a: Contributor, b: Contributor): boolean {
  return a.origin === b.origin && a.incarnation === b.incarnation && a.nonce === b.nonce
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
  /** By index: that of the first known run of the same origin. */
  readonly #firstRuns: number[] = []
  /** Verified certificates by index. */
  readonly #certificates: (Uint8Array | undefined)[] = []
  /** How many were ever added. */
  #certified = 0
  /** Indices that are free again. */
  #free: number[] = []
  /** Cache of the last lookup: a frame refers to the origin of its predictor several times. */
  #lastIndex = -1
  /** The same for `indexOfOrigin`. */
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

  /** A number that the runs of one peer have in common, below `limit`. It is valid until contributors are removed. */
  peerOf(index: number): number {
    return this.#firstRuns[index]
  }

  /** Upper bound of indices. */
  get limit(): number {
    return this.#contributors.length
  }

  /** A coverage with the same content. A table that several nodes of a process share returns the same object to all of them. */
  intern(coverage: Coverage): Coverage {
    return coverage
  }

  /** Changes whenever a certificate is added. */
  get certified(): number {
    return this.#certified
  }

  /** The verified certificate of a contributor: the signature by which its peer confirms the run. */
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

/**
 * Limits how many gradients of each peer a node uses to what the peer can have contributed at a
 * given rate, by the node's own clock. Frames state one number for all contributors to a sum, so a
 * sum or a batch is compared with what all of them may contribute together. A sum that is used is
 * charged to them in proportion to that.
 */
import { type Coverage, entriesOf } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import { type PredictorId, sameId } from '../state/predictor-id.js'

/** Maximum number of gradients that a peer contributes. */
export interface Quota {
  /** Gradients a period, on average over the time at one predictor. */
  readonly perPeriod: number
  /** Gradients that it may save up until then. */
  readonly burst: number
}

/** Periods whose gradients a peer may save up: those of ten seconds at the default period. */
const BURST_PERIODS = 100

/** The quota of a peer, from its gradients a second. @param period T in milliseconds */
export function quotaOf(rate: number, period: number): Quota {
  const perPeriod = (rate * period) / 1000
  return { perPeriod, burst: BURST_PERIODS * perPeriod }
}

/** A sum of a neighbour at the current predictor. */
export interface CountedSum {
  readonly count: number
  readonly coverage: Coverage
}

/** Sums of each neighbour that are remembered. */
const MEMORY = 64

type Charges = ReadonlyMap<string, number>
const NONE: Charges = new Map()

/** Gradients that peers have contributed together, with the number of covered segments of each. */
interface Part {
  readonly count: number
  readonly segments: ReadonlyMap<string, number>
}

function partsOf(charges: Charges): Part[] {
  return [...charges].map(([origin, count]) => ({ count, segments: new Map([[origin, 1]]) }))
}

export class Quotas {
  readonly #quota: Quota
  readonly #originOf: (contributor: number) => string
  /** Gradients left to each peer at the last change of predictor, if fewer than the burst. */
  readonly #left = new Map<string, number>()
  /** Periods since then. */
  #elapsed = 0
  /** Parent of the current predictor, and the charges for its batches. */
  #last: { readonly parent: PredictorId; readonly charges: Charges } | undefined
  /** Sums that were usable at the current predictor by session, oldest first. */
  readonly #sums = new Map<object, Part[]>()

  /** @param originOf the peer of a contributor */
  constructor(quota: Quota, originOf: (contributor: number) => string) {
    this.#quota = quota
    this.#originOf = originOf
  }

  elapse(periods: number): void {
    this.#elapsed += periods
  }

  /** Whether the sums have no more gradients than their contributors may contribute. */
  allows(sums: readonly CountedSum[]): boolean {
    const origins = new Set(sums.flatMap(({ coverage }) => [...this.#segmentsOf(coverage).keys()]))
    const count = sums.reduce((sum, one) => sum + one.count, 0)
    return count <= this.#availableOf(origins)
  }

  /** A sum of a neighbour may be used. @param from the session */
  recordSum(from: object, { count, coverage }: CountedSum): void {
    const sums = this.#sums.get(from) ?? []
    this.#sums.set(from, sums)
    // Indices of contributors may be assigned again.
    sums.push({ count, segments: this.#segmentsOf(coverage) })
    if (sums.length > MEMORY) sums.shift()
  }

  /**
   * The node has another predictor. The batches that led to it are charged. If it replaces the
   * current predictor as a child of the same parent, what that one's batch was charged counts for
   * its own, as most of their gradients are the same.
   * @param batches headers of the batches from a predictor that the node held, newest first; none
   * for a whole predictor
   */
  switchPredictor(batches: readonly Header[]): void {
    const parent = batches.at(-1)?.parent
    const isRival = parent !== undefined && this.#last !== undefined && sameId(this.#last.parent, parent)
    const refunds = isRival ? (this.#last?.charges ?? NONE) : NONE
    const charges = new Map<string, number>()
    for (const [i, batch] of [...batches].reverse().entries()) {
      if (i > 0) this.#charge(charges, batch, [])
      else this.#charge(charges, batch, isRival ? partsOf(refunds) : this.#usedIn(batch))
    }
    for (const origin of new Set([...this.#left.keys(), ...charges.keys(), ...refunds.keys()])) {
      const left = this.#available(origin) + (refunds.get(origin) ?? 0) - (charges.get(origin) ?? 0)
      if (left >= this.#quota.burst) this.#left.delete(origin)
      else this.#left.set(origin, Math.max(0, left))
    }
    this.#elapsed = 0
    this.#last = parent && { parent, charges }
    this.#sums.clear()
  }

  /**
   * @param parts of the batch whose counts are known; the rest is charged to the other contributors
   */
  #charge(charges: Map<string, number>, { count, coverage }: Header, parts: readonly Part[]): void {
    const rest = this.#segmentsOf(coverage)
    let left = count
    for (const { count, segments } of parts) {
      const origins = [...segments.keys()]
      if (!origins.every(origin => rest.has(origin))) continue
      this.#divide(charges, Math.min(left, count), origins)
      left -= Math.min(left, count)
      for (const origin of origins) rest.delete(origin)
    }
    this.#divide(charges, left, [...rest.keys()])
  }

  /** The newest sum of each neighbour that is part of the batch. */
  #usedIn({ coverage }: Header): Part[] {
    const all = this.#segmentsOf(coverage)
    const isPart = ({ segments }: Part) => [...segments].every(([origin, number]) => number <= (all.get(origin) ?? 0))
    return [...this.#sums.values()].flatMap(sums => sums.findLast(isPart) ?? [])
  }

  #divide(charges: Map<string, number>, count: number, origins: readonly string[]): void {
    const total = this.#availableOf(origins)
    if (total === 0) return
    for (const origin of origins) {
      const charge = count * (this.#available(origin) / total)
      charges.set(origin, (charges.get(origin) ?? 0) + charge)
    }
  }

  /** Covered segments by peer. */
  #segmentsOf(coverage: Coverage): Map<string, number> {
    return new Map(entriesOf(coverage).map(([contributor, segments]) => [this.#originOf(contributor), segments]))
  }

  #available(origin: string): number {
    const { perPeriod, burst } = this.#quota
    return (this.#left.get(origin) ?? burst) + perPeriod * this.#elapsed
  }

  #availableOf(origins: Iterable<string>): number {
    let sum = 0
    for (const origin of origins) sum += this.#available(origin)
    return sum
  }
}

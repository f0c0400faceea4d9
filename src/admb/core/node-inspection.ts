import type { Blocks } from '../../learning/types.js'
import { blocksOf } from '../../numeric/sums.js'
import { type ContributorTable, type Coverage, type CoveredContributor, entriesOf } from '../state/coverage.js'
import type { PredictorId } from '../state/predictor-id.js'
import type { OwnInfluence } from '../trust/influence.js'
import type { QuarantinedPredictor } from '../trust/jumps.js'
import type { Trust } from '../trust/trust.js'
import type { Traffic, TrafficBytes } from '../wire/encode.js'
import type { KeptSums } from '../wire/exchanged-sums.js'
import type { CurrentPredictor } from './current-predictor.js'
import type { Edge } from './edge.js'
import type { Ledger } from './ledger.js'
import type { Effect } from './options.js'
import type { OwnSum } from './own-sum.js'

export interface InspectedParts {
  readonly table: ContributorTable
  readonly edges: ReadonlyMap<number, Edge>
  readonly current: CurrentPredictor
  readonly ledger: Ledger
  readonly own: OwnSum
  readonly trust: Trust | undefined
  readonly influence: OwnInfluence | undefined
  readonly traffic: Traffic
  readonly period: () => number
  readonly effects: readonly Effect[]
}

/** A gradient sum, and the number of gradients in it. */
export interface InspectedSum {
  readonly sum: Blocks
  readonly count: number
}

/** Details of a node for statuses, checks and tests. Reading changes nothing. */
export class NodeInspection {
  readonly #parts: InspectedParts

  constructor(parts: InspectedParts) {
    this.#parts = parts
  }

  /** The newest predictor that waits for vouchers; undefined if none waits. */
  get quarantined(): QuarantinedPredictor | undefined {
    return this.#parts.trust?.quarantined
  }

  /** A better predictor of a neighbour that the gate has refused; undefined without one. */
  get refused(): Pick<QuarantinedPredictor, 'id' | 'from'> | undefined {
    for (const { peer, peerPredictor: id, pushed } of this.#parts.edges.values()) {
      const isRefused = id !== undefined && (pushed.isDistrusted || this.#parts.trust?.hasRefused(id))
      if (isRefused && this.#parts.current.compare(id) > 0) return { id, from: peer }
    }
    return undefined
  }

  /** Number of contributors (peers in one of their runs) that this node knows. */
  get contributors(): number {
    return this.#parts.table.size
  }

  /**
   * The vectors kept of own segments: how many, with how many grids, and how many periods ago the oldest was closed. With a budget also
   * the elements of those that cannot be carried over.
   */
  get retention() {
    const { retainedSums, retainedElements, retainedGrids, oldestRetained = this.#parts.period() } = this.#parts.ledger
    return {
      sums: retainedSums,
      elements: retainedElements,
      grids: retainedGrids,
      periods: this.#parts.period() - oldestRetained
    }
  }

  /** The integer sums kept as bases of differences, for each neighbour, predictor and direction. */
  get keptSums(): readonly KeptSums[] {
    return [...this.#parts.edges.values()].flatMap(({ exchanged }) => exchanged?.kept ?? [])
  }

  /** Number of steps kept for neighbours that hold an ancestor, and their encoded size in bytes. */
  get chain(): { readonly steps: number; readonly bytes: number } {
    return this.#parts.current.chain
  }

  /** Bytes of all frames composed so far, by what they carry. */
  get traffic(): TrafficBytes {
    return this.#parts.traffic.bytes
  }

  /**
   * Share of the squared norm of the last segment that rounding has left for the next one, 0 to 1;
   * undefined for float32 sums and before the first segment.
   */
  get residualShare(): number | undefined {
    return this.#parts.own.residualShare
  }

  /** Share of recent own sums' squared norm that the bound of influence takes, if there is one. */
  get clippedShare(): number | undefined {
    return this.#parts.influence?.lostShare
  }

  /** Number of closed segments that are available for the next update, and of their gradients. */
  get closedSegments(): { readonly segments: number; readonly count: number } {
    return this.#parts.ledger.closed
  }

  /**
   * Sum of the own gradients available for the next update, as far as their vectors are kept, and
   * of what rounding has left of others. For checks.
   */
  get unused(): Blocks {
    return this.#parts.own.unused(this.#parts.ledger.pending)
  }

  /** With a budget: numbers of inputs whose progress a crash has taken until they are learned again, as [first, end, …]. For checks. */
  get owed(): readonly number[] {
    return this.#parts.ledger.owed
  }

  /** Newest sum of a neighbour for the current predictor, with its contributors. */
  neighbourSum(edge: number): (InspectedSum & { readonly contributors: readonly CoveredContributor[] }) | undefined {
    const neighbourSum = this.#parts.edges.get(edge)?.held.sum
    if (neighbourSum === undefined) return undefined
    const { sum, count, coverage } = neighbourSum
    return { sum: blocksOf(sum), count, contributors: this.contributorsOf(coverage) }
  }

  /** The contributors in the coverage of a sum that this node holds, or of a kept header. */
  contributorsOf(coverage: Coverage): readonly CoveredContributor[] {
    return entriesOf(coverage).map(([number, segments]) => ({ ...this.#parts.table.contributor(number), segments }))
  }

  /** Predictor that the neighbour holds, according to its last frame. */
  neighbourPredictor(edge: number): PredictorId | undefined {
    return this.#parts.edges.get(edge)?.peerPredictor
  }

  /** Effects that the driver has not taken yet. For checks. */
  get effects(): readonly Effect[] {
    return this.#parts.effects
  }

  /** Number of the last frame received on an edge, and the last sum sent. For checks. */
  exchanged(edge: number): { readonly received: number; readonly lastSum: object | undefined } | undefined {
    const found = this.#parts.edges.get(edge)
    return found && { received: found.received, lastSum: found.sentSums.last }
  }
}

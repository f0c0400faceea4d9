/** The part of an ADMB node that changes nothing: what status displays, checks and drivers read of it. */
import type { Blocks } from '../../learner/types.js'
import type { CoveredContributor } from '../state/contributors.js'
import { type Coverage, covered, segmentsOf } from '../state/coverage.js'
import { type Batch, batchOf, type Header, type Predictor } from '../state/predictor.js'
import { compareIds, type PredictorId } from '../state/predictor-id.js'
import type { Shapes } from '../state/vectors.js'
import type { QuarantinedPredictor } from '../trust/jumps.js'
import type { KeptSums } from '../wire/exchanged-sums.js'
import { WAIT_BATCHES } from '../wire/limits.js'
import type { TrafficBytes } from '../wire/traffic.js'
import type { ReceivedPredictor } from './current-predictor.js'
import type { GradientAccount } from './ledger.js'
import { createParts, type NodeParts } from './node-parts.js'
import type { NodeStorage } from './node-storage.js'
import type { AdmbOptions } from './options.js'

/** The state of a node. `AdmbNode` adds the events that change it. */
export abstract class NodeView {
  /** Stores the predictor and gives it to nodes outside the tree. */
  readonly storage: NodeStorage
  /** @internal */
  protected readonly parts: NodeParts

  /** @throws RangeError if an option is out of range */
  constructor(options: AdmbOptions) {
    this.parts = createParts(options, (headers, received, from) => this.adopt(headers, received, from))
    this.storage = this.parts.storage
  }

  /**
   * Takes a received predictor as the current one.
   * @internal
   */
  protected abstract adopt(headers: readonly Header[], received: ReceivedPredictor, from: string): void

  /** Layouts of parameters and rule state. */
  get shapes(): Shapes {
    return this.parts.shapes
  }

  get predictor(): Predictor {
    return this.parts.current.predictor
  }

  /** b of the current predictor. */
  get batch(): number {
    return batchOf(this.parts.options.batch, this.predictor)
  }

  /** A better predictor that a neighbour has announced, for which this node waits with sums and updates; mostly undefined. */
  get expected(): PredictorId | undefined {
    return this.parts.announcements?.expected
  }

  /**
   * Number of gradients with which the node updates: `batch`, or more while it waits for an announced predictor, or for neighbours to
   * receive the current one.
   */
  get needed(): number {
    return this.isWaiting ? WAIT_BATCHES * this.batch : this.batch
  }

  /** Whether a neighbour has announced a better predictor, or has not received the current one. */
  get isWaiting(): boolean {
    return this.parts.announcements?.isWaiting ?? false
  }

  /** Whether no sums are sent, because a better predictor is expected, or the current one is on its way to a neighbour. */
  get holdsSums(): boolean {
    return this.parts.announcements?.holdsSums ?? false
  }

  /** Number of gradients available for the next update, own and neighbours'. The node updates when it reaches `needed`. */
  get gradients(): number {
    return this.parts.ledger.count + this.parts.sums.count
  }

  /** The predictor of another node that waits for vouchers since last; mostly undefined. */
  get quarantined(): QuarantinedPredictor | undefined {
    return this.parts.admission.quarantined
  }

  /** A better predictor of a neighbour that the gate has refused; mostly undefined. */
  get refused(): Pick<QuarantinedPredictor, 'id' | 'from'> | undefined {
    for (const { peer, peerPredictor: id, isDistrusted } of this.parts.edges.values()) {
      const isRefused = id !== undefined && (isDistrusted || this.parts.admission.hasRefused(id))
      if (isRefused && this.parts.current.compare(id) > 0) return { id, from: peer }
    }
    return undefined
  }

  /** Number of contributors (peers in one of their runs) that this node knows. */
  get contributors(): number {
    return this.parts.table.size
  }

  /** The vectors kept of own segments: how many, and how many periods ago the oldest was closed. */
  get retention(): { readonly sums: number; readonly periods: number } {
    const { retainedSums, oldestRetained = this.parts.period } = this.parts.ledger
    return { sums: retainedSums, periods: this.parts.period - oldestRetained }
  }

  /** The integer sums kept as bases of differences, for each neighbour, predictor and direction. */
  get keptSums(): readonly KeptSums[] {
    return [...this.parts.edges.values()].flatMap(({ exchanged }) => exchanged?.kept ?? [])
  }

  /** The steps kept for neighbours that hold an ancestor of the predictor: how many, and their encoded size in bytes. */
  get chain(): { readonly steps: number; readonly bytes: number } {
    return this.parts.current.chain
  }

  /** Bytes of all frames composed so far, by what they carry. */
  get traffic(): TrafficBytes {
    return this.parts.traffic.bytes
  }

  /**
   * Share of the squared norm of the last segment that rounding has left for the next one, 0 to 1; undefined for float32 sums and
   * before the first segment.
   */
  get residualShare(): number | undefined {
    return this.parts.ledger.residualShare
  }

  /** Share of the squared norm of recent own sums that the bound of influence takes, 0 to 1; undefined without a bound. */
  get clippedShare(): number | undefined {
    return this.parts.influence?.lostShare
  }

  /** What has become of the own gradients of this run. */
  get account(): GradientAccount {
    return this.parts.ledger.account
  }

  /** Number of own gradients that the lineage of the predictor has not used and that no batch can use any more. */
  get discarded(): number {
    return this.account.discarded
  }

  /** Number of closed segments of own gradients that are available for the next update, and of gradients in them. For checks. */
  get closedSegments(): { readonly segments: number; readonly count: number } {
    return this.parts.ledger.closed
  }

  /** Number of own gradients available for the next update, including those carried over. */
  get ownGradients(): number {
    return this.parts.ledger.count
  }

  /** Their sum, as it is sent. For checks. */
  get ownSum(): Batch {
    const { sum, count } = this.parts.ledger.total()
    return { sum, count }
  }

  /**
   * Sum of the own gradients available for the next update, as far as their vectors are kept, and of what rounding has left of
   * others. For checks.
   */
  get unused(): Blocks {
    return this.parts.ledger.unused
  }

  /** Headers of the predictor and its ancestors, newest first, as far as they are kept. */
  get lineage(): readonly Header[] {
    return this.parts.current.lineage
  }

  /** Newest sum from a neighbour for the current predictor, with its contributors. For status and checks. */
  neighbourSum(edge: number): (Batch & { readonly contributors: readonly CoveredContributor[] }) | undefined {
    const neighbourSum = this.parts.edges.get(edge)?.neighbourSum
    if (neighbourSum === undefined) return undefined
    const { sum, count, coverage } = neighbourSum
    return { sum, count, contributors: this.contributorsOf(coverage) }
  }

  /** The contributors in the coverage of a sum that this node holds, or of a header that it keeps. */
  contributorsOf(coverage: Coverage): readonly CoveredContributor[] {
    return covered(coverage).map(number => ({
      ...this.parts.table.contributor(number),
      segments: segmentsOf(coverage, number)
    }))
  }

  /** Predictor that the neighbour holds, according to its last frame. */
  neighbourPredictor(edge: number): PredictorId | undefined {
    return this.parts.edges.get(edge)?.peerPredictor
  }

  /** Whether the predictor with this id is better than the current one. */
  isBetter(id: PredictorId): boolean {
    return this.parts.current.compare(id) > 0 && !this.parts.admission.isRefused(id)
  }

  /** Whether a neighbour has said which predictor it holds, and none holds or expects a better one than the current one. */
  get hasJoined(): boolean {
    let isInformed = false
    for (const { peerPredictor, announced } of this.parts.edges.values()) {
      if (peerPredictor === undefined) continue
      isInformed = true
      if (this.isBetter(peerPredictor) || (announced && this.isBetter(announced.id))) return false
    }
    return isInformed
  }

  /** Whether a neighbour holds or expects this predictor or a better one, so that the tree will deliver it. */
  isExpected(id: PredictorId): boolean {
    const isAsGood = (other: PredictorId | undefined) => other !== undefined && compareIds(other, id) >= 0
    return [...this.parts.edges.values()].some(
      ({ peerPredictor, announced }) => isAsGood(peerPredictor) || isAsGood(announced?.id)
    )
  }
}

/**
 * Which predictors of other nodes a node adopts. It refuses those of excluded makers. About whole predictors
 * it asks the gate and then the rule for jumps: one that does not follow from a held predictor waits until enough peers vouch
 * for it.
 */

import type { CurrentPredictor, ReceivedPredictor } from '../core/current-predictor.js'
import type { Edge } from '../core/edge.js'
import type { AdmbOptions, Effect } from '../core/options.js'
import type { Header } from '../state/predictor.js'
import type { PredictorId } from '../state/predictor-id.js'
import type { Authenticity } from './authenticity.js'
import { Gate } from './gate.js'
import { Jumps, type Quarantined, type QuarantinedPredictor } from './jumps.js'
import type { Quotas } from './quotas.js'
import { type OutgoingVoucher, Vouchers } from './vouchers.js'

export interface AdmissionOptions extends Pick<AdmbOptions, 'self' | 'signer' | 'gate' | 'jumps'> {
  readonly current: CurrentPredictor
  /** Open sessions by edge. */
  readonly edges: ReadonlyMap<number, Edge>
  readonly authenticity: Authenticity
  readonly quotas: Quotas | undefined
  /** Takes effects for the driver. */
  readonly report: (effect: Effect) => void
}

export class Admission {
  readonly #options: AdmissionOptions
  readonly #gate: Gate
  readonly #vouchers: Vouchers
  readonly #jumps: Jumps
  #period = 0

  constructor(options: AdmissionOptions) {
    const { self, signer, jumps: rule, current, edges, authenticity } = options
    this.#options = options
    this.#gate = new Gate(options.gate)
    const holds = (id: PredictorId) => current.holds(id)
    this.#vouchers = new Vouchers({ signer, self, edges, holds, isListed: rule?.isListed })
    this.#jumps = new Jumps({
      rule,
      self,
      current: () => current.predictor.id,
      holds,
      vouchers: id => this.#vouchers.of(id),
      isExcluded: peer => authenticity.isExcluded(peer)
    })
  }

  /** The node has learned `count` inputs, by which the gate may judge differently. */
  added(count: number): void {
    this.#gate.added(count)
  }

  /** Whether the gate has rejected the predictor a short time ago, or it waits for vouchers. */
  hasRefused(id: PredictorId): boolean {
    return this.#gate.hasRejected(id) || this.#jumps.isWaiting(id)
  }

  /** The same, or there is a proof against its maker. */
  isRefused(id: PredictorId): boolean {
    return this.hasRefused(id) || this.#options.authenticity.isExcluded(id.origin)
  }

  /**
   * Whether the node may switch to a better predictor. One that needs vouchers waits, see `takeVouched`.
   * @param headers those of the predictor and its ancestors, newest first
   * @param from the neighbour, or the peer from which it was fetched
   */
  accepts(received: ReceivedPredictor, headers: readonly Header[], from: string): boolean {
    const { authenticity, current, quotas, report } = this.#options
    const { predictor, base, steps, attestation } = received
    const isListed = ({ coverage }: Header) => authenticity.unlisted(coverage) === undefined
    const batches = headers.slice(0, steps.length)
    if (authenticity.isExcluded(predictor.id.origin) || authenticity.isExcluded(attestation?.signer ?? '')) return false
    const follows = base !== undefined && batches.every(isListed) && (quotas?.allows(batches) ?? true)
    if (follows) return true
    if (!this.#gate.accepts(predictor, current.predictor)) {
      this.#gate.refuse(predictor.id)
      report({ kind: 'rejected', predictor, from })
      return false
    }
    if (this.#jumps.accepts(received, headers)) return true
    this.#quarantine(this.#jumps.wait(received, headers, from))
    return false
  }

  /** The predictor that waits for vouchers since last; mostly undefined. */
  get quarantined(): QuarantinedPredictor | undefined {
    const waiting = [...this.#jumps.waiting].at(-1)
    return waiting && this.#describe(waiting)
  }

  /** Removes and returns predictors that are better than the current one and for which enough peers vouch by now. */
  *takeVouched(): Generator<Quarantined> {
    const isBetter = (id: PredictorId) => this.#options.current.compare(id) > 0
    for (const waiting of this.#jumps.take(isBetter)) {
      const { received, headers, from } = waiting
      // The caller may have adopted another one meanwhile.
      if (isBetter(received.predictor.id) && this.accepts(received, headers, from)) yield waiting
    }
  }

  /** @throws FrameError if the voucher or question is malformed */
  receiveVoucher(edge: number, bytes: Uint8Array): void {
    this.#send(this.#vouchers.receive(edge, bytes))
  }

  disconnect(edge: number): void {
    this.#vouchers.disconnect(edge)
  }

  /** Repeats questions, which may be lost, and which others may be able to answer later. */
  tick(period: number): void {
    this.#period = period
    this.#vouchers.tick(period)
    for (const { received, backoff } of this.#jumps.waiting) {
      if (!backoff.due(period)) continue
      backoff.advance(period)
      this.#send(this.#vouchers.ask(received.predictor.id))
    }
  }

  /** Adds the contributors to which predictors that wait refer. */
  mark(live: Set<number>): void {
    this.#jumps.mark(live)
  }

  #quarantine(waiting: Quarantined | undefined): void {
    if (waiting === undefined) return
    this.#options.report({ kind: 'quarantined', ...this.#describe(waiting) })
    waiting.backoff.start(this.#period, 0)
    this.#send(this.#vouchers.ask(waiting.received.predictor.id))
  }

  #describe(waiting: Quarantined): QuarantinedPredictor {
    const { from, received } = waiting
    return { id: received.predictor.id, from, answers: this.#jumps.answers(waiting), needed: this.#jumps.needed }
  }

  #send(messages: readonly OutgoingVoucher[]): void {
    for (const message of messages) this.#options.report({ kind: 'announced', ...message })
  }
}

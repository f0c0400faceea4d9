/**
 * The jump rule. A whole predictor whose headers lead back to one that the node holds, or held, follows from it. Any other one is a
 * jump: a node that joins or was away for long makes one, and so does a victim of an invented predictor. With a threshold, a jump
 * waits until enough peers answer for it: as makers of signed headers in its lineage, or with a voucher that they hold it.
 */

import type { ReceivedPredictor } from './current-predictor.js'
import { Backoff } from './edge.js'
import type { Header } from './predictor.js'
import { idKey, type PredictorId, sameId } from './predictor-id.js'

/** How many peers must answer for a whole predictor that does not follow from a held one. */
export interface JumpRule {
  /** For a node that holds a predictor with updates; 0 for no threshold. */
  readonly signers: number
  /** For a node that holds only the starting predictor; 0 for no threshold. */
  readonly wholeSigners: number
  /** Whether a peer counts. @default all do */
  readonly isListed?: (peer: string) => boolean
}

/** A predictor that waits, for reports. */
export interface QuarantinedPredictor {
  readonly id: PredictorId
  /** The neighbour, or the peer from which it was fetched. */
  readonly from: string
  /** Number of peers that answer for it. */
  readonly answers: number
  readonly needed: number
}

/** Maximum number of predictors that wait, the newest of each sender. */
const MAX_WAITING = 8

/** A predictor that waits. */
export interface Quarantined {
  readonly received: ReceivedPredictor
  /** Of the predictor and its ancestors, newest first. */
  readonly headers: readonly Header[]
  /** The neighbour, or the peer from which it was fetched. */
  readonly from: string
  readonly backoff: Backoff
}

export interface JumpsOptions {
  /** Undefined for no thresholds. */
  readonly rule: JumpRule | undefined
  readonly self: string
  /** The current predictor's id. */
  readonly current: () => PredictorId
  /** Whether this node holds or held the predictor. */
  readonly holds: (id: PredictorId) => boolean
  /** Peers that have sent a valid voucher for it. */
  readonly vouchers: (id: PredictorId) => Iterable<string>
  /** Whether there is a proof against the peer. */
  readonly isExcluded: (peer: string) => boolean
}

export class Jumps {
  readonly #options: JumpsOptions
  /** By sender, oldest first. */
  readonly #waiting = new Map<string, Quarantined>()

  constructor(options: JumpsOptions) {
    this.#options = options
  }

  /** Number of peers that must answer for a jump now. */
  get needed(): number {
    const { rule, current } = this.#options
    return (current().updates === 0 ? rule?.wholeSigners : rule?.signers) ?? 0
  }

  /** Whether the whole predictor may be adopted: it follows from a held one, or enough peers answer for it. */
  accepts({ predictor: { id }, attestation }: ReceivedPredictor, headers: readonly Header[]): boolean {
    const { needed } = this
    if (needed === 0) return true
    const { current, holds } = this.#options
    // Anyone can sign headers from the starting predictor, which is all that a newcomer holds.
    if (current().updates > 0 && headers.some(({ parent }) => holds(parent))) return true
    return this.#answering(id, headers, attestation?.signer).size >= needed
  }

  /** Peers that answer for a predictor. */
  #answering(id: PredictorId, headers: readonly Header[], attested?: string): Set<string> {
    const { self, rule, vouchers, isExcluded } = this.#options
    const peers = new Set(headers.map(header => header.id.origin))
    for (const peer of vouchers(id)) peers.add(peer)
    if (attested !== undefined) peers.add(attested)
    for (const peer of peers)
      if (isExcluded(peer) || (peer !== self && rule?.isListed?.(peer) === false)) peers.delete(peer)
    return peers
  }

  /** Number of peers that answer for a predictor that waits. */
  answers({ received: { predictor, attestation }, headers }: Quarantined): number {
    return this.#answering(predictor.id, headers, attestation?.signer).size
  }

  /**
   * Keeps a predictor until enough peers answer for it. A predictor that follows from one of this sender that already waits does not
   * replace it, since peers answer for that one by then.
   * @returns what waits from now on; undefined if nothing new does
   */
  wait(received: ReceivedPredictor, headers: readonly Header[], from: string): Quarantined | undefined {
    const earlier = this.#waiting.get(from)?.received.predictor.id
    if (earlier && headers.some(({ id, parent }) => sameId(id, earlier) || sameId(parent, earlier))) return undefined
    const waiting = { received, headers, from, backoff: new Backoff() }
    this.#waiting.delete(from)
    this.#waiting.set(from, waiting)
    const [oldest] = this.#waiting.keys()
    if (this.#waiting.size > MAX_WAITING) this.#waiting.delete(oldest)
    return waiting
  }

  /** The predictors that wait, oldest first. */
  get waiting(): Iterable<Quarantined> {
    return this.#waiting.values()
  }

  isWaiting(id: PredictorId): boolean {
    if (this.#waiting.size === 0) return false
    const key = idKey(id)
    return [...this.#waiting.values()].some(({ received }) => idKey(received.predictor.id) === key)
  }

  /** Removes those that are no longer better, and returns those for which enough peers answer now, which wait no longer. */
  take(isBetter: (id: PredictorId) => boolean): readonly Quarantined[] {
    const ready: Quarantined[] = []
    for (const [from, waiting] of this.#waiting) {
      const { received, headers } = waiting
      const isReady = this.accepts(received, headers)
      if (isReady) ready.push(waiting)
      if (isReady || !isBetter(received.predictor.id)) this.#waiting.delete(from)
    }
    return ready
  }

  /** Adds the contributors to which the headers refer. */
  mark(live: Set<number>): void {
    for (const { headers } of this.#waiting.values())
      for (const { coverage } of headers) for (const contributor of coverage.contributors) live.add(contributor)
  }
}

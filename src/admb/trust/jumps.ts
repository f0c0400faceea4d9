/**
 * The jump rule. A whole predictor whose headers lead back to one that the node holds, or held,
 * follows from it. Any other one is a jump: a node that joins or was away for long makes one, and
 * so does a victim of an invented predictor. With a threshold, a jump waits until enough peers
 * answer for it: as makers of signed headers in its lineage, or with a voucher that they hold it.
 */

import { Backoff } from '../core/backoff.js'
import type { ReceivedPredictor } from '../core/current-predictor.js'
import type { Header } from '../state/predictor.js'
import { idKey, type PredictorId, sameId } from '../state/predictor-id.js'
import type { Attestation } from '../wire/frame.js'

/** Number of peers that must answer for a whole predictor that does not follow from a held one. */
export interface JumpRule {
  /** Their number; 0 for no threshold. */
  readonly signers: number
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
  /** Headers of the predictor and its ancestors, newest first. */
  readonly headers: readonly Header[]
  /** The neighbour, or the peer from which it was fetched. */
  readonly from: string
  readonly backoff: Backoff
  /** Key of its id, and keys of the parents in its headers. */
  readonly key: string
  readonly parents: ReadonlySet<string>
  /** Makers of its headers, and the signer of its attestation. */
  readonly makers: ReadonlySet<string>
}

export interface JumpsOptions {
  /** The rule; undefined for no threshold. */
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
  /** Predictors that wait by sender, oldest first. */
  readonly #waiting = new Map<string, Quarantined>()

  constructor(options: JumpsOptions) {
    this.#options = options
  }

  /** Number of peers that must answer for a jump now. */
  get needed(): number {
    return this.#options.rule?.signers ?? 0
  }

  /** Whether the whole predictor follows from a held one, or enough peers answer for it. */
  accepts({ predictor: { id }, attestation }: ReceivedPredictor, headers: readonly Header[]): boolean {
    const { needed } = this
    if (needed === 0) return true
    const { current, holds } = this.#options
    // Anyone can sign headers from the starting predictor, which is all that a newcomer holds.
    if (current().updates > 0 && headers.some(({ parent }) => holds(parent))) return true
    return this.#answers(id, makersOf(headers, attestation)) >= needed
  }

  /** Number of peers that answer for a predictor. */
  #answers(id: PredictorId, makers: Iterable<string>): number {
    const { self, rule, vouchers, isExcluded } = this.#options
    const peers = new Set([...makers, ...vouchers(id)])
    for (const peer of peers)
      if (isExcluded(peer) || (peer !== self && rule?.isListed?.(peer) === false)) peers.delete(peer)
    return peers.size
  }

  /** Number of peers that answer for a predictor that waits. */
  answers({ received, makers }: Quarantined): number {
    return this.#answers(received.predictor.id, makers)
  }

  /**
   * Keeps a predictor until enough peers answer for it. A predictor that follows from one of this
   * sender that already waits does not replace it, since peers answer for that one by then.
   * @returns what waits from now on; undefined if nothing new does
   */
  wait(received: ReceivedPredictor, headers: readonly Header[], from: string): Quarantined | undefined {
    const earlier = this.#waiting.get(from)?.received.predictor.id
    if (earlier && headers.some(({ id, parent }) => sameId(id, earlier) || sameId(parent, earlier))) return undefined
    const key = idKey(received.predictor.id)
    const parents = new Set(headers.map(({ parent }) => idKey(parent)))
    const makers = makersOf(headers, received.attestation)
    const waiting = { received, headers, from, backoff: new Backoff(), key, parents, makers }
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
    return [...this.#waiting.values()].some(waiting => waiting.key === key)
  }

  /** Removes predictors that are not better, and those that are ready. @returns the ready ones */
  takeReady(isBetter: (id: PredictorId) => boolean): readonly Quarantined[] {
    if (this.#waiting.size === 0) return []
    const { needed } = this
    const current = this.#options.current()
    const key = idKey(current)
    const ready: Quarantined[] = []
    for (const [from, waiting] of this.#waiting) {
      // The node may have adopted an ancestor since.
      const follows = current.updates > 0 && waiting.parents.has(key)
      const isReady = follows || this.answers(waiting) >= needed
      if (isReady) ready.push(waiting)
      if (isReady || !isBetter(waiting.received.predictor.id)) this.#waiting.delete(from)
    }
    return ready
  }

  /** Adds the contributors to which the headers refer. */
  mark(live: Set<number>): void {
    for (const { headers } of this.#waiting.values())
      for (const { coverage } of headers) for (const contributor of coverage.contributors) live.add(contributor)
  }
}

function makersOf(headers: readonly Header[], attestation: Attestation | undefined): Set<string> {
  const makers = new Set(headers.map(header => header.id.origin))
  return attestation === undefined ? makers : makers.add(attestation.signer)
}

/** Bounded log of network events, as observed by one peer. */

export type EventKind =
  | 'joined'
  | 'left'
  | 'lost'
  | 'partitioned'
  | 'healed'
  | 'adopted'
  | 'restarted'
  | 'refused'
  | 'drift'
  | 'duplicated'

export interface NetworkEvent {
  /** Consecutive sequence number. */
  readonly seq: number
  readonly at: number
  readonly kind: EventKind
  /** Affected peers, at most `PEERS_NAMED`. */
  readonly peers: readonly string[]
  /** Number of affected peers. */
  readonly count: number
  /**
   * Refused: the reason. Adopted: a peer of the group whose predictor was adopted. Restarted: the incarnation. Partitioned:
   * `silent` if the peers' statuses no longer arrive; otherwise both sides are visible. Drift: `network` if it is that of the
   * network, otherwise of a single peer.
   */
  readonly detail?: string
}

/** Maximum number of events. */
export const MAX_EVENTS = 200
export const PEERS_NAMED = 12

export class EventLog {
  readonly #events: NetworkEvent[] = []
  #seq = 0
  #taken = 0

  get events(): readonly NetworkEvent[] {
    return this.#events
  }

  add(at: number, kind: EventKind, peers: readonly string[], detail?: string, count = peers.length): void {
    const named = peers.slice(0, PEERS_NAMED)
    this.#events.push({ seq: ++this.#seq, at, kind, peers: named, count, detail })
    if (this.#events.length > MAX_EVENTS) this.#events.shift()
  }

  /** Events added since the last call. */
  take(): NetworkEvent[] {
    const added = this.#events.filter(({ seq }) => seq > this.#taken)
    this.#taken = this.#seq
    return added
  }
}

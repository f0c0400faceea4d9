/** What happened in the network, as far as it is known here; bounded. */

export type EventKind = 'joined' | 'left' | 'lost' | 'partitioned' | 'healed' | 'adopted' | 'restarted' | 'refused'

export interface NetworkEvent {
  /** One more than the event before. */
  readonly seq: number
  readonly at: number
  readonly kind: EventKind
  /** Whom it happened to: the first `PEERS_NAMED` of them. */
  readonly peers: readonly string[]
  /** How many they are. */
  readonly count: number
  /**
   * Refused: why. Adopted: whose predictor, as a peer id. Restarted: the number of the run. Partitioned: `silent` where nothing
   * is heard of the others any more; else both sides are heard of.
   */
  readonly detail?: string
}

/** Events kept at most. */
export const MAX_EVENTS = 200
export const PEERS_NAMED = 12

export class EventLog {
  readonly #events: NetworkEvent[] = []
  #seq = 0
  #taken = 0

  get events(): readonly NetworkEvent[] {
    return this.#events
  }

  add(at: number, kind: EventKind, peers: readonly string[], detail?: string): void {
    const named = peers.slice(0, PEERS_NAMED)
    this.#events.push({ seq: ++this.#seq, at, kind, peers: named, count: peers.length, detail })
    if (this.#events.length > MAX_EVENTS) this.#events.shift()
  }

  /** Those added since the last call. */
  take(): NetworkEvent[] {
    const news = this.#events.filter(({ seq }) => seq > this.#taken)
    this.#taken = this.#seq
    return news
  }
}

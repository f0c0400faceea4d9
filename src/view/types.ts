/** The network view as plain data, sent to the page as JSON. Times are ms since the epoch, by the clock of the viewing peer. */
import type { NetworkTotals, PeerRow } from './rows.js'

export type { NetworkTotals, PeerRow }

/** Totals and nearest peers of a subtree. */
export interface Subtree {
  readonly network: NetworkTotals
  readonly peers: readonly PeerRow[]
}

/** A peer that a search found, and the path to it over tree neighbours, without this peer. */
export interface FoundPeer extends PeerRow {
  readonly path: readonly string[]
}

/** Progressive loss (nats) after `inputs` inputs, at time `at`, and the loss over the last inputs. */
export type CurvePoint = readonly [inputs: number, at: number, loss: number, recent?: number]

/** Loss of training on the same data without a network, for comparison. */
export interface Reference {
  readonly name: 'serial' | 'isolated'
  /** Inputs per peer, and progressive loss in nats. */
  readonly points: readonly (readonly [inputs: number, loss: number])[]
}

/** A time in which no statuses of a peer arrived, in ms since the epoch. */
export type Absence = readonly [from: number, until: number]

export interface NetworkSnapshot {
  readonly at: number
  /** Id of the viewing peer; undefined for an observer that is not a peer. */
  readonly self?: string
  readonly network: NetworkTotals
  readonly peers: readonly PeerRow[]
  /** Oldest first. */
  readonly events: readonly NetworkEvent[]
  /** By peer id, for the first `CURVES_SHOWN` peers. */
  readonly curves: Readonly<Record<string, readonly CurvePoint[]>>
  /** Times in which the peers with curves were away, by peer id, oldest first; without those that never were. */
  readonly absences?: Readonly<Record<string, readonly Absence[]>>
  readonly references: readonly Reference[]
}

/** Changes since the last update or snapshot. */
export interface NetworkUpdate {
  readonly at: number
  readonly peers: readonly PeerRow[]
  /** Ids of peers that were removed. */
  readonly gone: readonly string[]
  readonly events: readonly NetworkEvent[]
  /** Present if they have changed. */
  readonly network?: NetworkTotals
  readonly references?: readonly Reference[]
}

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
const PEERS_NAMED = 12

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

/** What the page knows: the last snapshot, with all updates since. */
import { Curve, restoredCurve } from '../view/curve.js'
import { MAX_EVENTS, type NetworkEvent } from '../view/event-log.js'
import type { NetworkSnapshot, NetworkUpdate, PeerRow, Reference } from '../view/types.js'

/** Peers whose curves are drawn. */
const MAX_CURVES = 32

export class NetworkState {
  self: string | undefined
  /** When that was, by the server's clock. */
  at = 0
  peers = new Map<string, PeerRow>()
  /** Oldest first. */
  events: NetworkEvent[] = []
  curves = new Map<string, Curve>()
  references: readonly Reference[] = []

  reset(snapshot: NetworkSnapshot): void {
    this.self = snapshot.self
    this.at = snapshot.at
    this.peers = new Map(snapshot.peers.map(row => [row.id, row]))
    this.events = [...snapshot.events]
    this.curves = new Map(Object.entries(snapshot.curves).map(([id, points]) => [id, restoredCurve(points)]))
    this.references = snapshot.references
  }

  apply({ at, peers, gone, events, references }: NetworkUpdate): void {
    this.at = at
    for (const row of peers) {
      const isNews = this.peers.get(row.id)?.lastSeen !== row.lastSeen
      this.peers.set(row.id, row)
      if (isNews && row.loss !== undefined) this.#curve(row.id)?.add(row.inputs, row.lastSeen, row.loss)
    }
    for (const id of gone) {
      this.peers.delete(id)
      this.curves.delete(id)
    }
    // A snapshot may have had some of them already.
    const last = this.events.at(-1)?.seq ?? 0
    this.events = [...this.events, ...events.filter(({ seq }) => seq > last)].slice(-MAX_EVENTS)
    this.references = references ?? this.references
  }

  /** This peer first, the others as they came. */
  get rows(): PeerRow[] {
    const rank = (row: PeerRow) => (row.id === this.self ? 0 : row.firstSeen)
    return [...this.peers.values()].sort((a, b) => rank(a) - rank(b) || (a.id < b.id ? -1 : 1))
  }

  #curve(id: string): Curve | undefined {
    if (!this.curves.has(id) && this.curves.size < MAX_CURVES) this.curves.set(id, new Curve())
    return this.curves.get(id)
  }
}

/** The page's state of the network: the last snapshot with all updates since. */
import { Curve, restoredCurve } from '../view/curve.js'
import { MAX_EVENTS, type NetworkEvent } from '../view/event-log.js'
import type { NetworkSnapshot, NetworkUpdate, PeerRow, Reference } from '../view/types.js'

/** Limit of curves that are drawn. */
const MAX_CURVES = 32

export class NetworkState {
  self: string | undefined
  /** Time of the last update, by the server's clock. */
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
      const isNew = this.peers.get(row.id)?.lastSeen !== row.lastSeen
      this.peers.set(row.id, row)
      const { id, inputs, lastSeen, loss, recent, ended } = row
      if (isNew && loss !== undefined) this.#curve(id)?.add(inputs, lastSeen, loss, recent?.loss, ended)
    }
    for (const id of gone) {
      this.peers.delete(id)
      this.curves.delete(id)
    }
    // The snapshot may already contain some of these events.
    const last = this.events.at(-1)?.seq ?? 0
    this.events = [...this.events, ...events.filter(({ seq }) => seq > last)].slice(-MAX_EVENTS)
    this.references = references ?? this.references
  }

  /** This peer first, then the others in the order of their arrival. */
  get rows(): PeerRow[] {
    const rank = (row: PeerRow) => (row.id === this.self ? 0 : row.firstSeen)
    return [...this.peers.values()].sort((a, b) => rank(a) - rank(b) || (a.id < b.id ? -1 : 1))
  }

  #curve(id: string): Curve | undefined {
    if (!this.curves.has(id) && this.curves.size < MAX_CURVES) this.curves.set(id, new Curve())
    return this.curves.get(id)
  }
}

/** The network as a whole: sums, and means over all inputs of all peers. */
export interface Totals {
  readonly inputs: number
  readonly inputsPerSecond: number
  /** Updates of the best predictor. */
  readonly updates: number
  readonly loss: number | undefined
  readonly accuracy: number | undefined
  /** Over the last inputs of the peers that respond. */
  readonly recentLoss: number | undefined
  readonly recentAccuracy: number | undefined
  /** Bytes of frames sent by all peers. */
  readonly sent: number
}

type Recent = NonNullable<PeerRow['recent']>

/** The mean over the recent inputs of all peers that respond. */
function recentMean(peers: readonly PeerRow[], of: (recent: Recent) => number | undefined): number | undefined {
  const known = peers.flatMap(({ alive, recent }) => {
    const value = recent && of(recent)
    return alive && recent !== undefined && value !== undefined ? [{ inputs: recent.inputs, value }] : []
  })
  const inputs = known.reduce((sum, row) => sum + row.inputs, 0)
  return inputs === 0 ? undefined : known.reduce((sum, row) => sum + row.inputs * row.value, 0) / inputs
}

export function totalsOf(peers: readonly PeerRow[]): Totals {
  const sum = (rows: readonly PeerRow[], of: (row: PeerRow) => number) =>
    rows.reduce((total, row) => total + of(row), 0)
  const mean = (of: (row: PeerRow) => number | undefined) => {
    const known = peers.filter(row => of(row) !== undefined && row.inputs > 0)
    const inputs = sum(known, row => row.inputs)
    return inputs === 0 ? undefined : sum(known, row => row.inputs * (of(row) as number)) / inputs
  }
  return {
    inputs: sum(peers, row => row.inputs),
    inputsPerSecond: sum(peers, row => (row.alive ? row.inputsPerSecond : 0)),
    updates: peers.reduce((most, row) => Math.max(most, row.predictor.updates), 0),
    loss: mean(row => row.loss),
    accuracy: mean(row => row.accuracy),
    recentLoss: recentMean(peers, recent => recent.loss),
    recentAccuracy: recentMean(peers, recent => recent.accuracy),
    sent: sum(peers, row => row.sent)
  }
}

/**
 * The page's state of the network: the last snapshot with all updates since, from a stream of server-sent events. The page reads
 * the events from `fetch` (WHATWG HTML, section 9.2.6) instead of an `EventSource`, which cannot send a token.
 */
import { Curve, restoredCurve, wasAway } from '../view/curve.js'
import {
  MAX_EVENTS,
  type NetworkEvent,
  type NetworkSnapshot,
  type NetworkTotals,
  type NetworkUpdate,
  type PeerRow,
  type Reference
} from '../view/types.js'

/** Limit of curves that are drawn. */
const MAX_CURVES = 32

export class NetworkState {
  self: string | undefined
  /** The peer at the top of the drawing: this one, or that of a subtree. */
  root: string | undefined
  /** All peers, including those without a row; undefined before the first snapshot. */
  network: NetworkTotals | undefined
  /** Time of the last update, by the server's clock. */
  at = 0
  peers = new Map<string, PeerRow>()
  /** Oldest first. */
  events: NetworkEvent[] = []
  curves = new Map<string, Curve>()
  references: readonly Reference[] = []
  /** Numbers of the lines of peers, from 0. A line keeps its number. */
  readonly #places = new Map<string, number>()
  /** The smallest and the largest b of the page's own peer so far; undefined if b is fixed. */
  batches: readonly [min: number, max: number] | undefined

  reset(snapshot: NetworkSnapshot, root = snapshot.self): void {
    this.self = snapshot.self
    this.root = root
    this.network = snapshot.network
    this.at = snapshot.at
    this.peers = new Map(snapshot.peers.map(row => [row.id, row]))
    this.events = [...snapshot.events]
    this.curves = new Map(
      Object.entries(snapshot.curves).map(([id, points]) => [id, restoredCurve(points, snapshot.absences?.[id])])
    )
    this.references = snapshot.references
    this.#addBatch()
  }

  apply({ at, network, peers, gone, events, references }: NetworkUpdate): void {
    this.at = at
    this.network = network ?? this.network
    for (const row of peers) {
      const { id, inputs, lastSeen, loss, recent, ended } = row
      const before = this.peers.get(id)
      this.peers.set(id, row)
      const isNew = before?.lastSeen !== lastSeen
      if (isNew && before && wasAway(before, row)) this.#curve(id)?.away(before.lastSeen, lastSeen)
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
    this.#addBatch()
  }

  #addBatch(): void {
    const batch = this.peers.get(this.self ?? '')?.batch
    if (batch === undefined) return
    const [min, max] = this.batches ?? [batch, batch]
    this.batches = [Math.min(min, batch), Math.max(max, batch)]
  }

  /** Number of a peer's line among the lines of the plots, the lowest that was free when it came. */
  placeOf(id: string): number {
    for (const known of this.#places.keys()) if (!this.peers.has(known)) this.#places.delete(known)
    let place = this.#places.get(id)
    if (place !== undefined) return place
    const taken = new Set(this.#places.values())
    for (place = 0; taken.has(place); ) place++
    this.#places.set(id, place)
    return place
  }

  /** Whether there are peers without a row. */
  get isPartial(): boolean {
    return (this.network?.peers ?? 0) > this.rows.filter(({ alive }) => alive).length
  }

  /** The groups of peers that follow the same predictor: of all peers, as far as they are known. */
  get groups(): NetworkTotals['groups'] {
    if (this.isPartial) return this.network?.groups ?? []
    const alive = this.rows.filter(row => row.alive)
    const numbers = [...new Set(alive.map(({ group }) => group))].sort((a, b) => a - b)
    return numbers.map(group => {
      const members = alive.filter(row => row.group === group)
      return { group, peers: members.length, updates: Math.max(...members.map(({ predictor }) => predictor.updates)) }
    })
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

export interface ServerEvent {
  readonly event: string
  readonly data: string
}

export class EventParser {
  /** Id of the last event that had one. */
  lastId = ''
  /** Reconnection time requested by the server, in milliseconds. */
  retry: number | undefined
  #rest = ''
  #event = ''
  #data: string[] = []

  /** Discards an incomplete event of a broken stream. */
  reset(): void {
    this.#rest = ''
    this.#event = ''
    this.#data = []
  }

  /** @returns the events that the text completes */
  push(text: string): ServerEvent[] {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() as string
    return lines.flatMap(line => this.#line(line.endsWith('\r') ? line.slice(0, -1) : line))
  }

  #line(line: string): ServerEvent[] {
    if (line === '') return this.#dispatch()
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'data') this.#data.push(value)
    else if (field === 'event') this.#event = value
    else if (field === 'id' && !value.includes('\0')) this.lastId = value
    else if (field === 'retry' && /^\d+$/.test(value)) this.retry = Number(value)
    return []
  }

  #dispatch(): ServerEvent[] {
    const data = this.#data.join('\n')
    const event = this.#event || 'message'
    this.#event = ''
    this.#data = []
    return data === '' ? [] : [{ event, data }]
  }
}

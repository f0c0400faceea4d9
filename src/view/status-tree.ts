/**
 * Statuses over the overlay tree. On each edge, a peer reports the totals of all peers behind it as seen from the neighbour: its
 * own, merged with the last reports of its other edges. The tree has no cycles, so each peer is counted once. Besides totals, a
 * report has the rows of the peers that are nearest to the sender.
 *
 * Reports are rare, unless a neighbour wants frequent ones because a page is open on its side. Their interval follows from their
 * size, so that the bytes per second stay below a limit at any size of the network.
 *
 * Without clock and randomness: events in, messages out. Call `tick` at `nextDeadline`.
 */
import { type Aggregate, merge } from './aggregate.js'
import { MAX_INTERVAL_MS } from './status.js'
import {
  decodeRows,
  MAX_ROWS,
  MAX_TEXTS,
  parseMessage,
  type Query,
  type Report,
  type StatusMessage,
  type StatusRow,
  type Verify,
  type Want
} from './status-message.js'

/** Bytes per second that a peer wants to receive from all neighbours while a page is open, and maximum from one that asks for more. */
const RECEIVE_RATE = 1600
const MAX_RATE = 1000
/** Defaults of an edge whose neighbour has not requested frequent reports: bytes per second, minimum interval in ms, rows. */
const RARE = { rate: 30, least: 10_000, rows: 8 }
/** Minimum interval of frequent reports, in ms, and of their rows at distant peers. */
const LEAST_MS = 1000
const LEAST_ROWS = 6
/** Bytes that the transport adds to a message. */
const OVERHEAD = 150
/** A report is used for this many of its intervals after its arrival, plus a margin in ms. */
const USED_INTERVALS = 3
const USED_SLACK_MS = 5000
/** The row of a neighbour that has announced to leave, or has left with a problem, is reported for this long, in ms. */
const LEFT_MS = 30_000
/** A peer whose subtree was requested collects rows for this long, in ms. */
const FOCUS_MS = 15_000
/** Number of an edge, chosen by the driver. */
type EdgeId = number

interface Edge {
  readonly id: EdgeId
  readonly peer: string
  /** What the neighbour wants, and what it was told that this peer wants. */
  wanted: Want | undefined
  told: Want | undefined
  /** The last report of the neighbour, and until when it is used. */
  received: { readonly network: Aggregate; readonly rows: readonly StatusRow[]; readonly until: number } | undefined
  sentAt: number
  dueAt: number
  /** Interval in ms that the next report announces. */
  interval: number
}

export interface Answer {
  readonly ask: number
  /** From this peer, exclusive, to the peer whose report it is. */
  readonly path: readonly string[]
  readonly network: Aggregate
  readonly rows: readonly StatusRow[]
}

export interface OwnStatus {
  readonly row: Pick<StatusRow, 'id' | 'text' | 'signature' | 'status'>
  readonly totals: Aggregate
}

export class StatusTree {
  readonly #verify: Verify
  readonly #edges = new Map<EdgeId, Edge>()
  readonly #left = new Map<string, { readonly row: StatusRow; readonly until: number }>()
  readonly #requests = new StatusRequests()
  #own: OwnStatus
  #isWatching = false
  #focusUntil = Number.NEGATIVE_INFINITY
  readonly #messages: { readonly edge: EdgeId; readonly message: StatusMessage }[] = []
  readonly #answers: Answer[] = []

  constructor(own: OwnStatus, verify: Verify) {
    this.#own = own
    this.#verify = verify
  }

  /** Replaces this peer's status. @param isUrgent whether to report it at once */
  setOwn(own: OwnStatus, isUrgent = false): void {
    this.#own = own
    if (isUrgent) for (const edge of this.#edges.values()) edge.dueAt = Number.NEGATIVE_INFINITY
  }

  /** Whether this peer needs frequent reports about all peers. */
  watch(isWatching: boolean, now: number): void {
    this.#isWatching = isWatching
    this.#updateWants(now)
  }

  connect(id: EdgeId, peer: string, now: number): void {
    const never = Number.NEGATIVE_INFINITY
    const state = { wanted: undefined, told: undefined, received: undefined, sentAt: never, interval: LEAST_MS }
    this.#edges.set(id, { id, peer, ...state, dueAt: now })
    this.#updateWants(now)
  }

  disconnect(id: EdgeId, now: number): void {
    const first = this.#edges.get(id)?.received?.rows[0]
    // It may have left the tree because of the problem.
    if (first?.status.problem !== undefined) this.#left.set(first.id, { row: first, until: now + LEFT_MS })
    if (this.#edges.delete(id)) this.#updateWants(now)
  }

  /** Handles a message of a tree neighbour. @throws StatusError if it is malformed */
  receive(id: EdgeId, value: unknown, now: number): void {
    const message = parseMessage(value)
    const edge = this.#edges.get(id)
    if (edge === undefined) return
    const { want, report, ask, answer } = message
    if (want) this.#wanted(edge, want.rows > 0 ? want : undefined, now)
    if (report) this.#reported(edge, report, now)
    if (ask) this.#asks(edge, ask, now)
    if (answer) this.#answered(edge, answer)
  }

  /** Requests the subtree at the end of a path, or searches. @returns the number of the request; undefined without a recipient */
  ask(query: Query): number | undefined {
    const ask = this.#requests.add(undefined)
    return this.#forward(ask, query, undefined) ? ask : undefined
  }

  /** Reports when they are due. */
  tick(now: number): void {
    for (const [id, { until }] of this.#left) if (now > until) this.#left.delete(id)
    if (this.#focusUntil <= now) this.#updateWants(now)
    for (const edge of this.#edges.values()) {
      if (now < edge.dueAt) continue
      edge.sentAt = now
      edge.dueAt = now + edge.interval
      this.#send(edge, { report: this.#report(edge, (edge.wanted ?? RARE).rows, now) })
    }
  }

  /** The driver has sent a message with a report. @param bytes its encoded size, which determines when the next one is due */
  sent(id: EdgeId, bytes: number): void {
    const edge = this.#edges.get(id)
    if (edge === undefined) return
    const { rate, least } = paceOf(edge)
    const interval = Math.min(MAX_INTERVAL_MS, Math.max(least, Math.round((1000 * (bytes + OVERHEAD)) / rate)))
    // At most twice the interval that it announced.
    edge.dueAt = edge.sentAt + Math.min(interval, 2 * edge.interval)
    edge.interval = interval
  }

  /** Time at which `tick` must be called next; Infinity without edges. */
  get nextDeadline(): number {
    let next = this.#focusUntil > Number.NEGATIVE_INFINITY ? this.#focusUntil : Number.POSITIVE_INFINITY
    for (const { dueAt } of this.#edges.values()) next = Math.min(next, dueAt)
    return next
  }

  /** The messages to send since the last call, in order. */
  takeMessages(): { readonly edge: EdgeId; readonly message: StatusMessage }[] {
    return this.#messages.splice(0)
  }

  /** The answers that arrived since the last call. */
  takeAnswers(): Answer[] {
    return this.#answers.splice(0)
  }

  /** Whether a neighbour wants frequent reports. */
  get isWatched(): boolean {
    return [...this.#edges.values()].some(({ wanted }) => wanted !== undefined)
  }

  /** Interval in ms of this peer's most frequent reports. */
  get interval(): number {
    return [...this.#edges.values()].reduce((least, { interval }) => Math.min(least, interval), MAX_INTERVAL_MS)
  }

  /** Totals of the whole network, or of the part that a neighbour does not see. */
  network(now: number, except?: EdgeId): Aggregate {
    return merge([this.#own.totals, ...this.#received(now, except).map(({ network }) => network)])
  }

  /** The nearest peers without this one. */
  rows(now: number): StatusRow[] {
    const received = this.#received(now).flatMap(({ rows }) => rows)
    return [...received, ...this.#leftRows(received)].sort((a, b) => a.distance - b.distance)
  }

  /** Rows of peers that have left and are not back. */
  #leftRows(received: readonly StatusRow[]): StatusRow[] {
    const present = new Set(received.filter(({ status }) => !status.leaving).map(({ id }) => id))
    return [...this.#left.values()].flatMap(({ row }) => (present.has(row.id) ? [] : [row]))
  }

  #received(now: number, except?: EdgeId): NonNullable<Edge['received']>[] {
    return [...this.#edges.values()].flatMap(({ id, received }) =>
      received === undefined || id === except || now > received.until ? [] : [received]
    )
  }

  #report(edge: Edge | undefined, limit: number, now: number): Report {
    const network = this.network(now, edge?.id)
    const others = this.#received(now, edge?.id).flatMap(({ rows }) => rows)
    const near = [...this.#leftRows(this.#received(now).flatMap(({ rows }) => rows)), ...others]
      .sort((a, b) => a.distance - b.distance)
      .slice(0, Math.max(0, limit - 1))
    const own = { distance: 0, interval: 0, below: network.peers, ...this.#own.row }
    let length = 0
    const rows = [own, ...near].flatMap(({ status: _status, ...row }) => {
      length += row.text.length
      return length > MAX_TEXTS ? [] : [row]
    })
    return { interval: edge?.interval ?? LEAST_MS, network, rows }
  }

  #reported(edge: Edge, report: Report, now: number): void {
    const { interval, network, rows } = report
    if (rows[0]?.id !== edge.peer) throw new Error('the first row of a report must be that of its sender')
    const decoded = decodeRows(report, this.#verify, edge.received?.rows).map(row => ({
      ...row,
      distance: Math.min(255, row.distance + 1),
      interval: Math.max(row.interval, interval)
    }))
    const [first] = decoded
    if (first.status.leaving) this.#left.set(first.id, { row: first, until: now + LEFT_MS })
    edge.received = { network, rows: decoded, until: now + USED_INTERVALS * interval + USED_SLACK_MS }
  }

  #wanted(edge: Edge, want: Want | undefined, now: number): void {
    edge.wanted = want
    edge.interval = paceOf(edge).least
    this.#reportSoon(edge, now)
    this.#updateWants(now)
  }

  #reportSoon(edge: Edge, now: number): void {
    edge.dueAt = Math.min(edge.dueAt, Math.max(now, edge.sentAt + LEAST_MS))
  }

  /** Tells the neighbours what this peer wants, if that has changed. */
  #updateWants(now: number): void {
    const isWatching = this.#isWatching || now < this.#focusUntil
    if (now >= this.#focusUntil) this.#focusUntil = Number.NEGATIVE_INFINITY
    const edges = [...this.#edges.values()]
    const rate = Math.round(RECEIVE_RATE / Math.max(1, edges.length))
    for (const edge of edges) {
      const others = edges.filter(other => other !== edge && other.wanted !== undefined)
      const shares = others.map(({ wanted }) => this.#shareOf(wanted as Want))
      const rows = Math.max(isWatching ? MAX_ROWS : 0, ...shares)
      const want = { rows, rate: rows > 0 ? rate : 0 }
      if (want.rows === (edge.told?.rows ?? 0) && want.rate === (edge.told?.rate ?? 0)) continue
      edge.told = want
      this.#send(edge, { want })
    }
  }

  /** Number of the rows that one neighbour wants, which each of the others should report: rather too many, as subtrees differ. */
  #shareOf({ rows }: Want): number {
    const others = Math.max(1, this.#edges.size - 1)
    return Math.min(rows, Math.max(LEAST_ROWS, Math.ceil((rows - 1) * Math.min(1, 1.5 / others))))
  }

  #asks(edge: Edge, { ask, ...query }: NonNullable<StatusMessage['ask']>, now: number): void {
    if (!this.#requests.take(now)) return
    const { path, search } = query
    const isHere = search === undefined ? path?.length === 0 : matches(this.#own.row, search)
    if (isHere) {
      if (search === undefined) {
        this.#focusUntil = now + FOCUS_MS
        this.#updateWants(now)
      }
      const report = this.#report(edge, search === undefined ? MAX_ROWS : 1, now)
      this.#send(edge, { answer: { ask, path: [], report } })
    }
    if (search !== undefined || !isHere) this.#forward(this.#requests.add({ edge: edge.id, ask }), query, edge)
  }

  /** @returns whether there is a recipient */
  #forward(ask: number, { path, search }: Query, from: Edge | undefined): boolean {
    const to = [...this.#edges.values()].filter(
      edge => edge !== from && (search !== undefined || edge.peer === path?.[0])
    )
    for (const edge of to)
      this.#send(edge, { ask: { ask, ...(search === undefined ? { path: path?.slice(1) } : { search }) } })
    return to.length > 0
  }

  #answered(edge: Edge, { ask, path, report }: NonNullable<StatusMessage['answer']>): void {
    const request = this.#requests.answered(ask)
    if (request === undefined || path.length >= 255) return
    const whole = [edge.peer, ...path]
    const rows = decodeRows(report, this.#verify)
    if (rows[0]?.id !== whole[whole.length - 1]) throw new Error('the first row of an answer must end its path')
    const { from } = request
    const back = from && this.#edges.get(from.edge)
    if (back) this.#send(back, { answer: { ask: from.ask, path: whole, report } })
    else if (from === undefined) this.#answers.push({ ask, path: whole, network: report.network, rows })
  }

  #send(edge: Edge, message: StatusMessage): void {
    this.#messages.push({ edge: edge.id, message })
  }
}

/** Bytes per second of the reports on an edge, and their minimum interval in ms. */
function paceOf({ wanted }: Edge): { readonly rate: number; readonly least: number } {
  return wanted === undefined ? RARE : { rate: Math.min(MAX_RATE, Math.max(RARE.rate, wanted.rate)), least: LEAST_MS }
}

/** Whether the id or the name contains the text. */
function matches({ id, status }: Pick<StatusRow, 'id' | 'status'>, search: string): boolean {
  return id.includes(search) || (status.name ?? '').toLowerCase().includes(search.toLowerCase())
}

/** Requests that a peer answers or forwards: mean interval in ms, and burst. */
const ASK_MS = 250
const ASK_BURST = 12
/** Maximum number of unanswered requests, and of answers to one. */
const MAX_PENDING = 64
const MAX_ANSWERS = 20

/** Where a request came from, with its number there. */
interface Asker {
  readonly edge: number
  readonly ask: number
}

/**
 * The requests that a peer has sent or forwarded over the tree and that may still be answered. Their number and rate are bounded,
 * because a search reaches every peer.
 */
class StatusRequests {
  readonly #pending = new Map<number, { readonly from: Asker | undefined; answers: number }>()
  #asked = 0
  #busyUntil = Number.NEGATIVE_INFINITY

  /** Whether a request of a neighbour may be handled now; if so, it counts. */
  take(now: number): boolean {
    const busyUntil = Math.max(this.#busyUntil, now - ASK_BURST * ASK_MS) + ASK_MS
    if (busyUntil > now) return false
    this.#busyUntil = busyUntil
    return true
  }

  /** @param from undefined for a request of this peer @returns its number here */
  add(from: Asker | undefined): number {
    const ask = ++this.#asked
    this.#pending.set(ask, { from, answers: 0 })
    const [oldest] = this.#pending.keys()
    if (this.#pending.size > MAX_PENDING) this.#pending.delete(oldest)
    return ask
  }

  /** Counts an answer. @returns the request; undefined if it is unknown or has too many answers */
  answered(ask: number): { readonly from: Asker | undefined } | undefined {
    const pending = this.#pending.get(ask)
    return pending !== undefined && ++pending.answers <= MAX_ANSWERS ? pending : undefined
  }
}

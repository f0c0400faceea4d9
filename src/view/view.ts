/**
 * View of the network: totals of all peers, and a table of those whose statuses are received, with an event log and loss curves.
 * Its size is bounded whatever the peers send. It has no clock: callers pass the time (ms since the epoch, monotonic).
 */
import { type Aggregate, aggregateOf, figuresOf, merge } from './aggregate.js'
import { DriftMonitor, FailureDetector, PeerRecord } from './detectors.js'
import { Groups } from './groups.js'
import type { NetworkStatus } from './status.js'
import { type Run, runOf, TwinDetector } from './twins.js'
import {
  EventLog,
  type NetworkSnapshot,
  type NetworkTotals,
  type NetworkUpdate,
  type PeerRow,
  type Reference
} from './types.js'

/** Maximum number of peers; further ones are ignored until others are removed. */
export const MAX_PEERS = 1000
/** A peer is removed this long after its last status, in ms. */
export const FORGET_MS = 5 * 60 * 1000
/** Problem of a peer whose identity another live peer uses. */
export const DUPLICATED = 'another live peer uses its identity: stop one of them, and give each its own state directory'
/** A single read of the table counts as watching for this long, in ms. */
const LOOK_MS = 15_000
/** Maximum number of runs that are remembered of peers without a row. */
const MAX_RUNS = 4096
/** Number of peers whose curves are part of a snapshot; more lines would be unreadable. */
const CURVES_SHOWN = 32

export class NetworkView {
  readonly self: string | undefined
  readonly #records = new Map<string, PeerRecord>()
  readonly #log = new EventLog()
  readonly #groups = new Groups()
  readonly #failures = new FailureDetector(this.#log)
  readonly #drift = new DriftMonitor(this.#log)
  readonly #twins = new TwinDetector()
  readonly #listeners = new Set<(update: NetworkUpdate) => void>()
  /** Listeners that need the statuses of other peers. */
  readonly #watchers = new Set<(update: NetworkUpdate) => void>()
  #lookedAt = Number.NEGATIVE_INFINITY
  /** Totals of all peers; undefined if they are those of the table. */
  #totals: Aggregate | undefined
  #isPartial = false
  #network: Aggregate
  #sentNetwork = ''
  /** Newest announced run of each peer, the oldest announcement first. */
  readonly #runs = new Map<string, { readonly run: Run; readonly at: number }>()
  /** Peer of which a message arrived that is not of its newest run. */
  #doubted: string | undefined
  /** Rows that have changed since the last update. */
  readonly #changed = new Set<string>()
  #gone: string[] = []
  #references: readonly Reference[] = []
  #referencesChanged = false
  #at = 0

  /** @param self id of the viewing peer; undefined for an observer */
  constructor(self?: string) {
    this.self = self
    this.#network = merge([])
  }

  /** Number of peers, including silent ones. */
  get size(): number {
    return this.#records.size
  }

  /** Number of drifts of the network so far. */
  get networkDrifts(): number {
    return this.#drift.count
  }

  /** Whether the statuses of other peers are needed. */
  get isWatched(): boolean {
    return this.#watchers.size > 0 || this.#at - this.#lookedAt < LOOK_MS
  }

  /** Records a single read of the table. */
  look(): void {
    this.#lookedAt = this.#at
  }

  /** Sets the totals of all peers. @param isPartial whether there are peers without a row */
  setTotals(totals: Aggregate, isPartial: boolean): void {
    this.#totals = totals
    this.#isPartial = isPartial
  }

  /** Whether there are peers without a row. */
  get isPartial(): boolean {
    return this.#isPartial
  }

  /** Number of peers that respond, including those without a row. */
  get peers(): number {
    return this.#network.peers
  }

  /** The peer whose identity two live peers may have, once after each such message. */
  takeDoubt(): string | undefined {
    const id = this.#doubted
    this.#doubted = undefined
    return id
  }

  /** Handles the announcement of a run, signed by its peer. */
  announced(id: string, run: Run, now: number): void {
    const record = this.#records.get(id)
    const known = record?.status ?? this.#runs.get(id)?.run
    if (known !== undefined && runOf(known) !== runOf(run)) {
      if (record ? !this.#isNewer(record, run) : !isLater(run, known)) {
        this.#suspectTwin(id, run, now)
        return
      }
    }
    this.#runs.delete(id)
    this.#runs.set(id, { run, at: now })
    const [oldest] = this.#runs.keys()
    if (this.#runs.size > MAX_RUNS) this.#runs.delete(oldest)
  }

  /**
   * Processes the status of a peer, signed by that peer.
   * @param below number of peers behind it in the tree, itself included
   */
  receive(id: string, status: NetworkStatus, now: number, below?: number): void {
    this.#at = Math.max(this.#at, now)
    const known = this.#records.get(id)
    if (known === undefined) {
      if (this.#records.size >= MAX_PEERS || status.leaving) return
      const record = new PeerRecord(id, status, now)
      record.below = below
      this.#records.set(id, record)
      // Otherwise it may have been in the network, but without a row.
      if (!this.#isPartial || id === this.self) this.#log.add(now, 'joined', [id])
      this.#drift.first(record, now)
    } else {
      const before = known.status
      const restarted = runOf(status) !== runOf(before)
      if (restarted && !this.#isNewer(known, status)) {
        this.#suspectTwin(id, status, now)
        return
      }
      // Statuses can arrive out of order, on different ways.
      if (!restarted && (known.left || status.uptime < before.uptime)) return
      if (!restarted && status.uptime === before.uptime && !status.leaving) return
      known.below = below
      this.#drift.receive(known, status, restarted, now)
      known.receive(status, now)
      if (status.leaving) {
        this.#failures.forget(id)
        this.#log.add(now, 'left', [id])
      } else if (restarted) {
        this.#failures.forget(id)
        this.#log.add(now, 'restarted', [id], String(status.incarnation))
      } else if (!known.alive) this.#failures.back(id, now)
    }
    this.#changed.add(id)
  }

  /** The name of a peer; undefined if it has none, or is not known. */
  nameOf(id: string): string | undefined {
    return this.#records.get(id)?.status.name
  }

  /** The rows whose id or name contains a text. */
  find(text: string): PeerRow[] {
    const rows = [...this.#records.values()].map(record => this.#row(record))
    return rows.filter(({ id, name = '' }) => id.includes(text) || name.toLowerCase().includes(text.toLowerCase()))
  }

  /** The row of a peer whose status arrived by request. */
  rowOf(id: string, status: NetworkStatus, now: number, below: number): PeerRow {
    const known = this.#records.get(id)
    const group = known && this.#groups.of(id)
    const record = known?.status.uptime === status.uptime ? known : new PeerRecord(id, status, now)
    return { ...record.row(group ?? this.#groupOfDigests().get(status.trail[0]) ?? 0), below }
  }

  /** Whether two live peers have this identity. */
  isDuplicated(id: string): boolean {
    return this.#twins.has(id)
  }

  /** The connection to a peer ended without a last status. It counts as silent until its next status. */
  suspect(id: string, now: number): void {
    const record = this.#records.get(id)
    if (record === undefined || record.left) return
    record.isSuspected = true
    this.tick(now)
  }

  /** Logs that a peer was refused. */
  refused(id: string, reason: string, now: number): void {
    this.#at = Math.max(this.#at, now)
    this.#log.add(now, 'refused', id === '' ? [] : [id], reason.slice(0, 300))
  }

  /** Sets the reference curves. */
  setReferences(references: readonly Reference[]): void {
    this.#references = references
    this.#referencesChanged = true
  }

  /** Updates derived state and notifies the listeners. Call it a few times a second. */
  tick(now: number): void {
    this.#at = Math.max(this.#at, now)
    this.#updateLiveness(now)
    const alive = [...this.#records.values()].filter(record => record.alive)
    this.#network = this.#totals ?? this.#sum(alive, now)
    this.#failures.check(alive, now)
    this.#drift.check(alive, this.#network, now)
    this.#regroup(now)
    this.#notify()
  }

  snapshot(): NetworkSnapshot {
    const records = [...this.#records.values()]
    const own = records.filter(({ id }) => id === this.self)
    const shown = [...own, ...records.filter(({ id }) => id !== this.self)].slice(0, CURVES_SHOWN)
    return {
      at: this.#at,
      self: this.self,
      network: this.describe(this.#network),
      peers: records.map(record => this.#row(record)),
      events: [...this.#log.events],
      curves: Object.fromEntries(shown.map(({ id, curve }) => [id, [...curve.points]])),
      absences: Object.fromEntries(
        shown.flatMap(({ id, curve }) => (curve.absences.length > 0 ? [[id, curve.absences]] : []))
      ),
      references: this.#references
    }
  }

  /**
   * @param watches whether the listener needs the statuses of other peers; otherwise it receives only the available ones
   * @returns a function that ends the subscription
   */
  subscribe(listener: (update: NetworkUpdate) => void, watches = true): () => void {
    this.#listeners.add(listener)
    if (watches) this.#watchers.add(listener)
    return () => {
      this.#listeners.delete(listener)
      this.#watchers.delete(listener)
    }
  }

  #suspectTwin(id: string, run: Run, now: number): void {
    this.#doubted = id
    if (!this.#twins.receive(id, run, now)) return
    this.#log.add(now, 'duplicated', [id])
    if (this.#records.has(id)) this.#changed.add(id)
  }

  #sum(records: readonly PeerRecord[], now: number): Aggregate {
    return merge(
      records.map(record => {
        const { status } = record
        return aggregateOf(status, [[status.predictor.updates, status.trail[0]]], this.#drift.isDrifting(record, now))
      })
    )
  }

  /** Numbers of groups by the digests of the predictors that their peers held. */
  #groupOfDigests(): Map<string, number> {
    const numbers = new Map<string, number>()
    for (const { id, held } of this.#records.values())
      for (const digest of held) numbers.set(digest, this.#groups.of(id) ?? 0)
    return numbers
  }

  /** Totals as figures. Groups have the numbers of those rows that held a common predictor. */
  describe(totals: Aggregate): NetworkTotals {
    return describeTotals(totals, this.#groupOfDigests())
  }

  #row(record: PeerRecord): PeerRow {
    const row = record.row(this.#groups.of(record.id) ?? 0)
    return this.isDuplicated(record.id) ? { ...row, problem: row.problem ?? DUPLICATED } : row
  }

  /** Whether a status of another run belongs to a later one. */
  #isNewer({ id, alive, left, status }: PeerRecord, run: Run): boolean {
    return id !== this.self && (left || !alive || isLater(run, status))
  }

  #updateLiveness(now: number): void {
    for (const id of this.#twins.expire(now)) if (this.#records.has(id)) this.#changed.add(id)
    for (const record of this.#records.values()) {
      const { id, alive: wasAlive, lastSeen } = record
      record.alive = record.isAlive(now)
      if (record.alive !== wasAlive) this.#changed.add(id)
      // In a large network, only the nearest peers are reported: a peer without news may have become a distant one.
      const isDistant = wasAlive && !record.alive && !record.left && !record.isSuspected && this.#isPartial
      if (wasAlive && !record.alive && !record.left && !isDistant) this.#failures.silent(id, now)
      if (now - lastSeen <= FORGET_MS && !isDistant) continue
      this.#records.delete(id)
      this.#groups.forget(id)
      this.#failures.forget(id)
      this.#changed.delete(id)
      this.#gone.push(id)
    }
  }

  #regroup(now: number): void {
    const current = [...this.#records.values()].filter(record => record.isCurrent(now))
    const before = new Map(current.map(({ id }) => [id, this.#groups.of(id)]))
    const followers = current.map(({ id, status, held }) => {
      return { id, updates: status.predictor.updates, neighbours: status.neighbours, held }
    })
    const adoptions = this.#groups.assign(followers)
    for (const [id, group] of before) if (this.#groups.of(id) !== group) this.#changed.add(id)
    for (const { peers, group } of adoptions) {
      const held = followers.find(({ id }) => !peers.includes(id) && this.#groups.of(id) === group)
      this.#log.add(now, 'adopted', peers, held?.id)
    }
  }

  #notify(): void {
    const events = this.#log.take()
    const rows = [...this.#changed].map(id => this.#row(this.#records.get(id) as PeerRecord))
    const gone = this.#gone
    const references = this.#referencesChanged ? { references: this.#references } : {}
    const network = this.describe(this.#network)
    const text = JSON.stringify(network)
    const isNew = text !== this.#sentNetwork
    this.#sentNetwork = text
    this.#changed.clear()
    this.#gone = []
    this.#referencesChanged = false
    if (rows.length + gone.length + events.length === 0 && !references.references && !isNew) return
    const update = { at: this.#at, peers: rows, gone, events, ...(isNew && { network }), ...references }
    for (const listener of this.#listeners) listener(update)
  }
}

/** Whether a run is later than another one of the same peer. */
function isLater({ incarnation, started }: Run, before: Run): boolean {
  return incarnation > before.incarnation || (incarnation === before.incarnation && started > before.started)
}

/** @param numbers numbers of groups by the digests of the predictors that their rows held; other groups get further numbers */
function describeTotals(totals: Aggregate, numbers: ReadonlyMap<string, number>): NetworkTotals {
  let last = Math.max(-1, ...numbers.values())
  const groups = totals.groups.map(({ peers, updates, held }) => {
    const digest = held.map(([, one]) => one).find(one => numbers.has(one))
    return { group: numbers.get(digest ?? '') ?? ++last, peers, updates }
  })
  const versions = totals.versions.map(([version, count]) => ({ version, peers: count }))
  return { ...figuresOf(totals), groups, versions }
}

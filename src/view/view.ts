/**
 * View of the whole network, built from received statuses: a table of peers, an event log, loss curves. Its size is bounded
 * whatever the peers send. It has no clock: callers pass the time (ms since the epoch, monotonic).
 */
import { DriftMonitor } from './drift-monitor.js'
import { EventLog } from './event-log.js'
import { FailureDetector } from './failure-detector.js'
import { Groups } from './groups.js'
import { PeerRecord } from './peer-record.js'
import type { NetworkStatus } from './status.js'
import { runOf, TwinDetector } from './twins.js'
import type { NetworkSnapshot, NetworkUpdate, PeerRow, Reference } from './types.js'

/** Maximum number of peers; further ones are ignored until others are removed. */
export const MAX_PEERS = 1000
/** A peer is removed this long after its last status, in ms. */
export const FORGET_MS = 5 * 60 * 1000
/** Problem of a peer whose identity another live peer uses. */
export const DUPLICATED = 'another live peer uses its identity: stop one of them, and give each its own state directory'
/** A single read of the table counts as watching for this long, in ms. */
const LOOK_MS = 15_000
/** How long statuses are needed to tell whether two live peers have one identity, in ms. */
const DOUBT_MS = 30_000
/** Number of peers whose curves are part of a snapshot; more lines would be unreadable. */
export const CURVES_SHOWN = 32

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
  #pausedAt: number | undefined
  /** When a status arrived that is not of the newest run of its peer. */
  #doubtedAt = Number.NEGATIVE_INFINITY
  /** Rows that have changed since the last update. */
  readonly #changed = new Set<string>()
  #gone: string[] = []
  #references: readonly Reference[] = []
  #referencesChanged = false
  #at = 0

  /** @param self id of the viewing peer; undefined for an observer */
  constructor(self?: string) {
    this.self = self
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
    return this.#watchers.size > 0 || this.#at - this.#lookedAt < LOOK_MS || this.#at - this.#doubtedAt < DOUBT_MS
  }

  /** Records a single read of the table. */
  look(): void {
    this.#lookedAt = this.#at
  }

  /** Other peers publish no regular statuses from now on, so their silence is not a failure. */
  pause(now: number): void {
    this.#pausedAt ??= now
  }

  /** Ends `pause`. No effect without one. */
  resume(now: number): void {
    if (this.#pausedAt === undefined) return
    for (const record of this.#records.values()) record.postpone(now - this.#pausedAt, now)
    this.#pausedAt = undefined
  }

  /** Processes the status of a peer, signed by that peer. */
  receive(id: string, status: NetworkStatus, now: number): void {
    this.#at = Math.max(this.#at, now)
    const known = this.#records.get(id)
    if (known === undefined) {
      if (this.#records.size >= MAX_PEERS || status.leaving) return
      const record = new PeerRecord(id, status, now)
      this.#records.set(id, record)
      this.#log.add(now, 'joined', [id])
      this.#drift.first(record, now)
    } else {
      const before = known.status
      const restarted = runOf(status) !== runOf(before)
      if (restarted && !this.#isNewer(known, status)) {
        this.#doubtedAt = now
        if (!this.#twins.receive(id, status, now)) return
        this.#log.add(now, 'duplicated', [id])
        this.#changed.add(id)
        return
      }
      // Gossip can deliver statuses out of order.
      if (!restarted && (known.left || status.uptime < before.uptime)) return
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
    if (this.#pausedAt !== undefined) {
      this.#notify()
      return
    }
    this.#updateLiveness(now)
    const alive = [...this.#records.values()].filter(record => record.alive)
    this.#failures.check(alive, now)
    this.#drift.check(alive, now)
    this.#regroup(now)
    this.#notify()
  }

  snapshot(): NetworkSnapshot {
    const records = [...this.#records.values()]
    const own = records.filter(({ id }) => id === this.self)
    const shown = [...own, ...records.filter(({ id }) => id !== this.self)].slice(0, CURVES_SHOWN)
    return {
      at: this.#at,
      ...(this.self === undefined ? {} : { self: this.self }),
      peers: records.map(record => this.#row(record)),
      events: [...this.#log.events],
      curves: Object.fromEntries(shown.map(({ id, curve }) => [id, [...curve.points]])),
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

  #row(record: PeerRecord): PeerRow {
    const row = record.row(this.#groups.of(record.id) ?? 0)
    return this.isDuplicated(record.id) ? { ...row, problem: row.problem ?? DUPLICATED } : row
  }

  /** Whether a status of another run belongs to a later one. */
  #isNewer({ id, alive, left, status: before }: PeerRecord, { incarnation, started }: NetworkStatus): boolean {
    if (id === this.self) return false
    if (left || !alive || incarnation > before.incarnation) return true
    return incarnation === before.incarnation && started > before.started
  }

  #updateLiveness(now: number): void {
    for (const id of this.#twins.expire(now)) if (this.#records.has(id)) this.#changed.add(id)
    for (const record of this.#records.values()) {
      const { id, alive: wasAlive, lastSeen } = record
      record.alive = record.isAlive(now)
      if (record.alive !== wasAlive) this.#changed.add(id)
      if (wasAlive && !record.alive && !record.left) this.#failures.silent(id, now)
      if (now - lastSeen <= FORGET_MS) continue
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
    this.#changed.clear()
    this.#gone = []
    this.#referencesChanged = false
    if (rows.length + gone.length + events.length === 0 && !references.references) return
    const update = { at: this.#at, peers: rows, gone, events, ...references }
    for (const listener of this.#listeners) listener(update)
  }
}

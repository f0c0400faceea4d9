/**
 * What one peer observes of the others: a record of each, and the detectors of failures and of drift, which report events.
 */

import type { Aggregate } from './aggregate.js'
import { Curve, wasAway } from './curve.js'
import { treeComponents } from './groups.js'
import type { NetworkStatus } from './status.js'
import type { EventLog, PeerRow } from './types.js'

/** A peer counts as alive for this many status intervals after its last status, plus a slack for slow machines. */
const ALIVE_INTERVALS = 3
const ALIVE_SLACK_MS = 1500
/** A predictor counts as held recently for this many status intervals. */
const HELD_INTERVALS = 2.5
/** The predictors of a peer can be compared with those of others for this many intervals after its last status. */
const CURRENT_INTERVALS = 1.75

/** The last status of a peer, when it arrived, and the predictors held recently. */
export class PeerRecord {
  readonly id: string
  readonly firstSeen: number
  readonly curve = new Curve()
  status: NetworkStatus
  lastSeen: number
  /** Whether the connection to it ended after its last status. */
  isSuspected = false
  /** Result of the last liveness check. */
  alive = true
  /** Number of peers behind it in the tree, itself included; undefined if unknown. */
  below: number | undefined
  /** Whether it has ever had an edge that both ends reported. */
  linked = false
  /** Time at which it last raised an alarm of drift. */
  driftAt = Number.NEGATIVE_INFINITY
  /** Short digests of predictors, and when they were last reported. */
  readonly #held = new Map<string, number>()

  constructor(id: string, status: NetworkStatus, now: number) {
    this.id = id
    this.firstSeen = now
    this.status = status
    this.lastSeen = now
    this.receive(status, now)
  }

  receive(status: NetworkStatus, now: number): void {
    if (wasAway({ ...this.status, alive: this.alive }, status)) this.curve.away(this.lastSeen, now)
    this.status = status
    this.lastSeen = now
    this.isSuspected = false
    if (status.loss !== undefined) this.curve.add(status.inputs, now, status.loss, status.recent?.loss, status.ended)
    for (const digest of status.trail) this.#held.set(digest, now)
    const limit = now - HELD_INTERVALS * status.interval
    for (const [digest, at] of this.#held) if (at < limit) this.#held.delete(digest)
  }

  get held(): Iterable<string> {
    return this.#held.keys()
  }

  get left(): boolean {
    return this.status.leaving === true
  }

  /** Whether its predictors can be compared with those of others. */
  isCurrent(now: number): boolean {
    return this.isAlive(now) && now - this.lastSeen <= CURRENT_INTERVALS * this.status.interval
  }

  isAlive(now: number): boolean {
    return (
      !this.left && !this.isSuspected && now - this.lastSeen <= ALIVE_INTERVALS * this.status.interval + ALIVE_SLACK_MS
    )
  }

  row(group: number): PeerRow {
    const { version: _version, interval: _interval, trail: _trail, leaving: _leaving, ...reported } = this.status
    const { id, firstSeen, lastSeen, alive, left, below } = this
    return { id, ...reported, firstSeen, lastSeen, alive, left, group, below }
  }
}

/** Changes within this time are reported as one event, in ms. */
const AGGREGATION_MS = 2000
/** The tree must be partitioned for this long before it is reported, in ms: the overlay repairs most partitions sooner. */
const PARTITION_MS = 4000

interface PendingEvent {
  readonly since: number
  readonly ids: Set<string>
}

/**
 * Detects lost and recovered peers, and partitions of the tree. Single observations are unreliable (an edge is replaced, a machine
 * stalls, peers of a partition become silent one after another), so changes are aggregated and reported after a delay.
 */
export class FailureDetector {
  readonly #log: EventLog
  #silent: PendingEvent | undefined
  #back: PendingEvent | undefined
  /** Peers reported as silent. */
  readonly #reported = new Set<string>()
  #partitionedSince: number | undefined
  /** Peers reported as partitioned although their statuses arrive. */
  #cutOff: readonly string[] = []

  constructor(log: EventLog) {
    this.#log = log
  }

  silent(id: string, now: number): void {
    this.#silent ??= { since: now, ids: new Set() }
    this.#silent.ids.add(id)
  }

  /** A status of a silent peer arrived. */
  back(id: string, now: number): void {
    this.#silent?.ids.delete(id)
    if (!this.#reported.delete(id)) return
    this.#back ??= { since: now, ids: new Set() }
    this.#back.ids.add(id)
  }

  /** Stops tracking a peer. */
  forget(id: string): void {
    this.#silent?.ids.delete(id)
    this.#back?.ids.delete(id)
    this.#reported.delete(id)
  }

  /** @param alive peers whose statuses arrive regularly */
  check(alive: readonly PeerRecord[], now: number): void {
    if (this.#silent && now - this.#silent.since >= AGGREGATION_MS) {
      const ids = [...this.#silent.ids]
      for (const id of ids) this.#reported.add(id)
      // A single silent peer may have died; several at once are more likely behind a broken link.
      if (ids.length === 1) this.#log.add(now, 'lost', ids)
      else if (ids.length > 1) this.#log.add(now, 'partitioned', ids, 'silent')
      this.#silent = undefined
    }
    if (this.#back && (now - this.#back.since >= AGGREGATION_MS || this.#reported.size === 0)) {
      if (this.#back.ids.size > 0) this.#log.add(now, 'healed', [...this.#back.ids])
      this.#back = undefined
    }
    this.#checkTree(alive, now)
  }

  #checkTree(alive: readonly PeerRecord[], now: number): void {
    const components = treeComponents(alive.map(({ id, status }) => ({ id, neighbours: status.neighbours })))
    const records = new Map(alive.map(record => [record.id, record]))
    for (const component of components) {
      if (component.length > 1) for (const id of component) (records.get(id) as PeerRecord).linked = true
    }
    // A new peer without any edge so far is not partitioned.
    const known = components.filter(component => component.some(id => records.get(id)?.linked))
    if (known.length <= 1) {
      const healed = this.#cutOff.filter(id => records.has(id))
      if (healed.length > 0) this.#log.add(now, 'healed', healed)
      this.#cutOff = []
      this.#partitionedSince = undefined
      return
    }
    this.#partitionedSince ??= now
    if (this.#cutOff.length > 0 || now - this.#partitionedSince < PARTITION_MS) return
    const [, ...smaller] = known.sort((a, b) => b.length - a.length)
    const cutOff = new Set(smaller.flat())
    // In order of appearance.
    this.#cutOff = alive.map(({ id }) => id).filter(id => cutOff.has(id))
    this.#log.add(now, 'partitioned', this.#cutOff)
  }
}

/** Alarms of different peers within this time can have a common cause, in ms: slow streams notice a change later. */
export const COMMON_MS = 2 * 60 * 1000
/** Minimum number of peers with alarms. */
const LEAST_PEERS = 2

/**
 * Merges the alarms of single peers to those of the network: the loss rose at most of the peers that learn, so the data of the
 * network have changed, not only those of one peer.
 */
export class DriftMonitor {
  readonly #log: EventLog
  #isDrifting = false
  #count = 0

  constructor(log: EventLog) {
    this.#log = log
  }

  /** Number of drifts of the network. */
  get count(): number {
    return this.#count
  }

  /** The first status of a peer may be published because of an alarm. */
  first(record: PeerRecord, now: number): void {
    const { drift, inputs, inputsPerSecond } = record.status
    if (drift === undefined || 1000 * (inputs - drift.inputs) > COMMON_MS * inputsPerSecond) return
    record.driftAt = now
    this.#log.add(now, 'drift', [record.id])
  }

  /** Call it before the record takes the status. @param restarted whether the status is the first of a run */
  receive(record: PeerRecord, { drift }: NetworkStatus, restarted: boolean, now: number): void {
    const before = restarted ? 0 : (record.status.drift?.alarms ?? 0)
    if (drift === undefined || drift.alarms <= before) return
    record.driftAt = now
    this.#log.add(now, 'drift', [record.id])
  }

  /** Whether the loss of a peer rose recently. */
  isDrifting({ driftAt }: PeerRecord, now: number): boolean {
    return now - driftAt <= COMMON_MS
  }

  /** @param alive peers whose statuses arrive regularly, to be named @param network totals of all peers */
  check(alive: readonly PeerRecord[], { drifting, learning }: Aggregate, now: number): void {
    const isDrifting = drifting >= LEAST_PEERS && drifting > learning / 2
    // Each change is reported once.
    if (isDrifting && !this.#isDrifting) {
      this.#count++
      const ids = alive.filter(record => this.isDrifting(record, now)).map(({ id }) => id)
      this.#log.add(now, 'drift', ids, 'network', drifting)
    }
    this.#isDrifting = isDrifting
  }
}

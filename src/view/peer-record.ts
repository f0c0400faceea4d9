/** The last status of a peer, when it arrived, and the predictors held recently. */
import { Curve, wasAway } from './curve.js'
import type { NetworkStatus } from './status.js'
import type { PeerRow } from './types.js'

/** A peer counts as alive for this many status intervals after its last status, plus a slack for slow machines. */
const ALIVE_INTERVALS = 3
const ALIVE_SLACK_MS = 1500
/** A predictor counts as held recently for this many status intervals. */
const HELD_INTERVALS = 2.5
/** The predictors of a peer can be compared with those of others for this many intervals after its last status. */
const CURRENT_INTERVALS = 1.75

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
  /** When it last raised an alarm of drift. */
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
    return { id, ...reported, firstSeen, lastSeen, alive, left, group, ...(below === undefined ? {} : { below }) }
  }
}

/** One peer as it was last heard of: its status, when that came, and what it held lately. */
import { Curve } from './curve.js'
import type { NetworkStatus } from './status.js'
import type { PeerRow } from './types.js'

/** A peer is heard of again within so many of its intervals, and some time for a slow machine, or it is not alive. */
const ALIVE_INTERVALS = 3
const ALIVE_SLACK_MS = 1500
/** For so many intervals a predictor counts as held lately. */
const HELD_INTERVALS = 2.5
/** What a peer held can be compared with what others held meanwhile while its last word is not older than so many intervals. */
const CURRENT_INTERVALS = 1.75

export class PeerRecord {
  readonly id: string
  readonly firstSeen: number
  readonly curve = new Curve()
  status: NetworkStatus
  lastSeen: number
  /** As the last look found it. */
  alive = true
  /** Whether it has ever had a neighbour that said so too. */
  linked = false
  /** Short digests of predictors, and when they were last told of. */
  readonly #held = new Map<string, number>()

  constructor(id: string, status: NetworkStatus, now: number) {
    this.id = id
    this.firstSeen = now
    this.status = status
    this.lastSeen = now
    this.receive(status, now)
  }

  receive(status: NetworkStatus, now: number): void {
    this.status = status
    this.lastSeen = now
    if (status.loss !== undefined) this.curve.add(status.inputs, now, status.loss)
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

  /** Whether what it held can be compared with what the others hold. */
  isCurrent(now: number): boolean {
    return this.isAlive(now) && now - this.lastSeen <= CURRENT_INTERVALS * this.status.interval
  }

  isAlive(now: number): boolean {
    return !this.left && now - this.lastSeen <= ALIVE_INTERVALS * this.status.interval + ALIVE_SLACK_MS
  }

  row(group: number): PeerRow {
    const { version: _version, interval: _interval, trail: _trail, leaving: _leaving, ...told } = this.status
    const { id, firstSeen, lastSeen, alive, left } = this
    return { id, ...told, firstSeen, lastSeen, alive: alive, left, group }
  }
}

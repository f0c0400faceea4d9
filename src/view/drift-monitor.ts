/**
 * Merges the alarms of single peers to those of the network: the loss rose at most of the peers that learn, so the data of the
 * network have changed, not only those of one peer.
 */
import type { Aggregate } from './aggregate.js'
import type { EventLog } from './event-log.js'
import type { PeerRecord } from './peer-record.js'
import type { NetworkStatus } from './status.js'

/** Alarms of different peers within this time can have a common cause, in ms: slow streams notice a change later. */
export const COMMON_MS = 2 * 60 * 1000
/** Minimum number of peers with alarms. */
const LEAST_PEERS = 2

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

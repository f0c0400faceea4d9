/**
 * Detects lost and recovered peers, and partitions of the tree. Single observations are unreliable (an edge is replaced, a machine
 * stalls, peers of a partition become silent one after another), so changes are aggregated and reported after a delay.
 */
import { treeComponents } from './components.js'
import type { EventLog } from './event-log.js'
import type { PeerRecord } from './peer-record.js'

/** Changes within this time are reported as one event, in ms. */
const AGGREGATION_MS = 2000
/** The tree must be partitioned for this long before it is reported, in ms: the overlay repairs most partitions sooner. */
const PARTITION_MS = 4000

interface PendingEvent {
  readonly since: number
  readonly ids: Set<string>
}

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

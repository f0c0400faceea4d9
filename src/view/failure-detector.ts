/**
 * Who has fallen silent, who is back, and whether the known tree is in one piece. Single observations deceive (an edge changes,
 * a machine hiccups, several peers fall silent one after another), so each is told when it has lasted a while, as one event.
 */
import { treeComponents } from './components.js'
import type { EventLog } from './event-log.js'
import type { PeerRecord } from './peer-record.js'

/** What begins within that time of each other is one event, in milliseconds. */
const AGGREGATION_MS = 2000
/** How long the tree must be in pieces before that is told: the overlay mends what it can in less. */
const PARTITION_MS = 4000

interface PendingEvent {
  readonly since: number
  readonly ids: Set<string>
}

export class FailureDetector {
  readonly #log: EventLog
  #silent: PendingEvent | undefined
  #back: PendingEvent | undefined
  /** Those of whom it was told that they are silent. */
  readonly #reported = new Set<string>()
  #partitionedSince: number | undefined
  /** Of whom it was told that they are cut off, though heard of. */
  #cutOff: readonly string[] = []

  constructor(log: EventLog) {
    this.#log = log
  }

  silent(id: string, now: number): void {
    this.#silent ??= { since: now, ids: new Set() }
    this.#silent.ids.add(id)
  }

  /** Heard of again. */
  back(id: string, now: number): void {
    this.#silent?.ids.delete(id)
    if (!this.#reported.delete(id)) return
    this.#back ??= { since: now, ids: new Set() }
    this.#back.ids.add(id)
  }

  /** Neither missed nor waited for any more. */
  forget(id: string): void {
    this.#silent?.ids.delete(id)
    this.#back?.ids.delete(id)
    this.#reported.delete(id)
  }

  /** @param alive the peers heard of lately */
  check(alive: readonly PeerRecord[], now: number): void {
    if (this.#silent && now - this.#silent.since >= AGGREGATION_MS) {
      const ids = [...this.#silent.ids]
      for (const id of ids) this.#reported.add(id)
      // One that falls silent may have died; several at once are more likely behind the same broken link.
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
    // A newcomer that has found nobody yet is not cut off.
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
    // As they came, which is how people know them.
    this.#cutOff = alive.map(({ id }) => id).filter(id => cutOff.has(id))
    this.#log.add(now, 'partitioned', this.#cutOff)
  }
}

/** Warnings of a peer: what its node refuses, drift, and a master; and how many of them the log receives. */
import type { Effect } from '../admb/index.js'
import { type Drift, DriftLog, describeAlarm } from '../learning/index.js'
import type { Log } from '../network/index.js'
import type { NetworkUpdate, NetworkView } from '../view/index.js'
import { describeQuarantined } from './trust.js'

type Warned = Extract<Effect, { readonly kind: 'rejected' | 'quarantined' | 'unlisted' | 'excessive' | 'excluded' }>

/** What a peer logs when its node does not accept something of another peer. */
export function warningOf(effect: Warned): string {
  switch (effect.kind) {
    case 'rejected': {
      const { updates, origin } = effect.predictor.id
      return `refused a predictor from ${effect.from} (update ${updates}, computed by ${origin}): on recent inputs it is worse than the current one`
    }
    case 'quarantined':
      return describeQuarantined(effect)
    case 'unlisted':
      return `sums of ${effect.from} are not used: they contain gradients of ${effect.contributor}, which is not on the allow-list`
    case 'excessive':
      return `gradients that ${effect.from} sends are not used: their contributors claim more than --trust bounded,rate=N allows`
    case 'excluded':
      return `${effect.maker} has signed two different updates with one name: nothing of it is accepted any more`
    default:
      return effect satisfies never
  }
}

/** Number of warnings that may be logged at once. */
const BURST = 10
/** Time after which one more warning may be logged, in milliseconds. */
const EVERY_MS = 10_000

/**
 * Limits the rate of warnings, so that a file of malformed lines, or a peer that sends invalid data, does not flood the log.
 * Suppressed warnings are counted.
 */
export class WarningLimiter {
  readonly #emit: (reason: string) => void
  readonly #now: () => number
  #left = BURST
  #refilled: number
  #suppressed = 0

  /** @param now a monotonic clock in milliseconds */
  constructor(emit: (reason: string) => void, now: () => number) {
    this.#emit = emit
    this.#now = now
    this.#refilled = now()
  }

  warn(reason: string): void {
    const now = this.#now()
    const refill = Math.floor((now - this.#refilled) / EVERY_MS)
    this.#refilled += refill * EVERY_MS
    this.#left = Math.min(BURST, this.#left + refill)
    if (this.#left === 0) {
      this.#suppressed++
      return
    }
    this.#left--
    const more = this.#suppressed === 0 ? '' : ` (and ${this.#suppressed} suppressed warnings)`
    const limit = this.#left === 0 ? `; further warnings are logged at most every ${EVERY_MS / 1000} s` : ''
    this.#suppressed = 0
    this.#emit(reason + more + limit)
  }
}

/** Logs drift of this peer and of the network. */
export class DriftAlerts {
  readonly #log: Log
  readonly #alarms = new DriftLog()
  /** Ends the subscription to the view. */
  readonly stop: () => void

  constructor(view: NetworkView, log: Log) {
    this.#log = log
    // This subscription alone does not request statuses from other peers.
    this.stop = view.subscribe(update => this.#receive(update), false)
  }

  /** Logs the alarms of this peer that are new. */
  own(drift: Drift | undefined): void {
    for (const alarm of this.#alarms.take(drift)) this.#log('warn', describeAlarm(alarm), { ...alarm })
  }

  #receive({ events }: NetworkUpdate): void {
    for (const { kind, detail, peers, count } of events) {
      if (kind !== 'drift' || detail !== 'network') continue
      this.#log('warn', `drift of the network: the loss rose at ${count} peers, most of those that learn`, { peers })
    }
  }
}

/** Time of waiting for the same peers after which there is a line, in ms. */
const WAIT_MS = 5000

/** Logs the master of DMB and MaWo-DMB, and peers for which a peer waits. */
export class MasterWatch {
  readonly #self: string
  readonly #log: Log
  readonly #label: (peer: string) => string
  #master = ''
  #waitsFor: readonly string[] = []
  #since = 0
  #updates = -1
  #hasWarned = false

  constructor(self: string, log: Log, label: (peer: string) => string) {
    this.#self = self
    this.#log = log
    this.#label = label
  }

  /** Why the peer learns nothing now; undefined if it does not wait for others, or only for a short time. */
  get problem(): string | undefined {
    if (!this.#hasWarned) return undefined
    const [first, ...others] = this.#waitsFor
    // Statuses contain ASCII characters.
    const name = this.#label(first).replaceAll(/[^ -~]/g, '?')
    return `DMB waits for gradients of ${name}${others.length > 0 ? ` and ${others.length} more` : ''}`
  }

  /**
   * @param master root of the tree
   * @param waitsFor peers for which the peer waits
   * @param updates of its predictor
   * @param now milliseconds of a monotonic clock
   */
  observe(master: string, waitsFor: readonly string[], updates: number, now: number): void {
    if (master !== this.#master) {
      const line = master === this.#self ? 'this peer is the master' : `the master is ${this.#label(master)}`
      this.#log('info', line, { master })
      this.#master = master
    }
    // The peer's own stream may be slow, which is no reason to wait for others.
    const others = waitsFor.filter(peer => peer !== this.#self)
    const isSame = updates === this.#updates && others.join() === this.#waitsFor.join()
    this.#updates = updates
    if (!isSame) {
      if (this.#hasWarned && others.length === 0) this.#log('info', 'DMB continues', {})
      this.#waitsFor = others
      this.#since = now
      this.#hasWarned = false
    } else if (others.length > 0 && !this.#hasWarned && now - this.#since >= WAIT_MS) {
      this.#hasWarned = true
      this.#log('warn', `${this.problem}: a peer that has crashed must return, or leave the network`, {})
    }
  }
}

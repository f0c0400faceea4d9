/** Logs drift of this peer and of the network. */
import { type Drift, DriftLog, describeAlarm } from '../learning/index.js'
import type { Log } from '../network/index.js'
import type { NetworkUpdate, NetworkView } from '../view/index.js'

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

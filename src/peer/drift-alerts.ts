/** Logs drift of this peer and of the network, and reports it to the owner's webhook. */
import { type Drift, DriftLog, describeAlarm } from '../learner/index.js'
import type { Log } from '../network/index.js'
import type { NetworkUpdate, NetworkView } from '../view/index.js'
import { Webhook } from './webhook.js'

export interface DriftAlertOptions {
  readonly id: string
  readonly name: string | undefined
  /** Name of the data. */
  readonly data: string | undefined
  readonly view: NetworkView
  readonly log: Log
  /** URL. */
  readonly webhook: string | undefined
}

export class DriftAlerts {
  readonly #options: DriftAlertOptions
  readonly #webhook: Webhook | undefined
  readonly #alarms = new DriftLog()
  readonly #unsubscribe: () => void

  constructor(options: DriftAlertOptions) {
    const { view, webhook, log } = options
    this.#options = options
    this.#webhook = webhook === undefined ? undefined : new Webhook(webhook, log)
    const onUpdate = ({ events }: NetworkUpdate) => {
      for (const { kind, detail, at, peers, count } of events) {
        if (kind === 'drift' && detail === 'network') this.#network(at, peers, count)
      }
    }
    // This subscription alone does not request statuses from other peers.
    this.#unsubscribe = view.subscribe(onUpdate, false)
  }

  /** Reports the alarms of this peer that are new. */
  own(drift: Drift | undefined): void {
    for (const alarm of this.#alarms.take(drift)) {
      this.#options.log('warn', describeAlarm(alarm), { ...alarm })
      this.#post('peer', Date.now(), alarm)
    }
  }

  stop(): void {
    this.#unsubscribe()
    this.#webhook?.stop()
  }

  #network(at: number, peers: readonly string[], count: number): void {
    this.#options.log('warn', `drift of the network: the loss rose at ${count} peers, most of those that learn`, {
      peers
    })
    this.#post('network', at, { peers, count })
  }

  #post(scope: 'peer' | 'network', at: number, details: object): void {
    const { id, name, data } = this.#options
    this.#webhook?.post({ event: 'drift', scope, at: new Date(at).toISOString(), peer: id, name, data, ...details })
  }
}

/**
 * Publishes this peer's status, passes the statuses of other peers to the network view, and ticks the view. The interval of a
 * peer's statuses grows with the number of peers, so that their total rate stays bounded.
 */
import type { Log, Network } from '../network/index.js'
import {
  DUPLICATED,
  decodeStatus,
  encodeStatus,
  type HeldPredictor,
  MAX_NEIGHBOURS,
  type NetworkStatus,
  NetworkView,
  RecentDigests
} from '../view/index.js'
import type { PeerStatus } from './options.js'

/** Interval of a peer's statuses in milliseconds. It grows in proportion above `LARGE_NETWORK` peers. */
const INTERVAL_MS = 1000
const LARGE_NETWORK = 100
const MAX_INTERVAL_MS = 30_000
/** Interval of the view's ticks, in milliseconds. */
const TICK_MS = 500
/** Number of intervals over which the rate of inputs is averaged. */
const RATE_INTERVALS = 5

export interface StatusPublisherOptions {
  readonly network: Pick<Network, 'id' | 'publish'>
  readonly name: string | undefined
  readonly status: () => PeerStatus
  readonly log: Log
  /** Called with each status that is published. */
  readonly onPublished: (status: NetworkStatus) => void
}

export class StatusPublisher {
  readonly view: NetworkView
  readonly #options: StatusPublisherOptions
  readonly #recentDigests = new RecentDigests()
  readonly #epoch = Date.now() - performance.now()
  readonly #started = this.#now()
  readonly #samples: { readonly at: number; readonly inputs: number }[] = []
  readonly #ticking: NodeJS.Timeout
  #publishing: NodeJS.Timeout | undefined

  constructor(options: StatusPublisherOptions) {
    this.#options = options
    this.view = new NetworkView(options.network.id)
    this.#ticking = setInterval(() => this.view.tick(this.#now()), TICK_MS)
    this.view.subscribe(({ events }) => {
      for (const { kind, peers } of events)
        if (kind === 'duplicated') options.log('warn', `peer ${peers[0]}: ${DUPLICATED}`, { peer: peers[0] })
    })
    this.#publishPeriodically()
  }

  /** Adds predictors that the learner held since the last call. */
  addPredictors(recent: readonly HeldPredictor[]): void {
    this.#recentDigests.add(...recent)
  }

  /** Handles a status from gossip. @throws StatusError if it is malformed */
  receive(from: string, bytes: Uint8Array): void {
    this.view.receive(from, decodeStatus(bytes), this.#now())
  }

  /** What is wrong if another live peer has this identity. */
  get duplicate(): string | undefined {
    return this.view.isDuplicated(this.#options.network.id) ? DUPLICATED : undefined
  }

  /** The connection to a peer ended. */
  lost(peer: string): void {
    this.view.suspect(peer, this.#now())
  }

  refused(peer: string, reason: string): void {
    this.view.refused(peer, reason, this.#now())
  }

  /** Publishes a last status, which announces that the peer leaves. */
  stop(): void {
    clearInterval(this.#ticking)
    clearTimeout(this.#publishing)
    this.#publish(INTERVAL_MS, true)
  }

  #now(): number {
    return Math.round(this.#epoch + performance.now())
  }

  #publishPeriodically(): void {
    const interval = Math.round(Math.min(MAX_INTERVAL_MS, INTERVAL_MS * Math.max(1, this.view.size / LARGE_NETWORK)))
    this.#publish(interval, false)
    // Jitter, so that peers that started together do not stay synchronised.
    this.#publishing = setTimeout(() => this.#publishPeriodically(), interval * (0.9 + 0.2 * Math.random()))
  }

  #publish(interval: number, leaving: boolean): void {
    const now = this.#now()
    const { network, name, status, onPublished } = this.#options
    const { incarnation, nonce, inputs, averageLoss, accuracy, metrics, neighbours, predictor, drift, ...rest } =
      status()
    const { updates, origin } = predictor
    const published: NetworkStatus = {
      version: 1,
      ...(name === undefined ? {} : { name }),
      incarnation,
      nonce,
      started: this.#started,
      uptime: Math.round((now - this.#started) / 100) / 10,
      interval,
      inputs,
      inputsPerSecond: this.#rate(now, inputs),
      ...(averageLoss < 1e15 ? { loss: rounded(averageLoss) } : {}),
      ...(accuracy === undefined ? {} : { accuracy: rounded(accuracy) }),
      ...recentOf(metrics),
      ...(drift &&
        drift.alarms > 0 && { drift: { alarms: drift.alarms, inputs: drift.recent[drift.recent.length - 1].inputs } }),
      sent: rest.sent.bytes,
      received: rest.received.bytes,
      neighbours: neighbours.slice(0, MAX_NEIGHBOURS),
      predictor: { updates, origin, incarnation: predictor.incarnation },
      trail: this.#recentDigests.publish(predictor),
      adopted: rest.adopted,
      discarded: rest.discarded,
      ...(rest.problem === undefined ? {} : { problem: rest.problem }),
      ...(rest.skipped > 0 && { skipped: rest.skipped }),
      ended: rest.ended,
      ...(leaving ? { leaving } : {})
    }
    network.publish('status', encodeStatus(published))
    this.view.receive(network.id, published, now)
    onPublished(published)
  }

  #rate(at: number, inputs: number): number {
    this.#samples.push({ at, inputs })
    if (this.#samples.length > RATE_INTERVALS + 1) this.#samples.shift()
    const [first] = this.#samples
    return at > first.at ? Math.max(0, Math.round((10_000 * (inputs - first.inputs)) / (at - first.at)) / 10) : 0
  }
}

/** The figures of the smallest window. */
function recentOf(metrics: PeerStatus['metrics']): Pick<NetworkStatus, 'recent'> {
  const recent = metrics?.recent[0]
  if (recent === undefined || recent.inputs === 0 || !(recent.loss < 1e15)) return {}
  const { inputs, loss, accuracy, rmse } = recent
  return {
    recent: {
      inputs,
      loss: rounded(loss),
      ...(accuracy === undefined ? {} : { accuracy: rounded(accuracy) }),
      ...(rmse === undefined ? {} : { rmse: rounded(rmse) })
    }
  }
}

/** Rounds to seven digits, because further digits cost bytes without information. */
function rounded(value: number): number {
  return Number(value.toPrecision(7))
}

/**
 * Keeps the picture of the network that every peer has: tells all others how this one is, hears how they are, and gives the
 * view its time. The more peers there are the less often each speaks, so that what all say together stays bounded.
 */
import type { Network } from '../network/index.js'
import {
  decodeStatus,
  encodeStatus,
  type HeldPredictor,
  MAX_NEIGHBOURS,
  type NetworkStatus,
  NetworkView,
  RecentDigests
} from '../view/index.js'
import type { PeerStatus } from './options.js'

/** Between two statuses of a peer, in milliseconds; more where there are more peers than `CROWD`. */
const INTERVAL_MS = 1000
const CROWD = 100
const LONGEST_INTERVAL_MS = 30_000
/** Between two looks at what the view has concluded. */
const TICK_MS = 500
/** The rate of inputs is that of the last so many intervals. */
const RATE_INTERVALS = 5

export interface StatusPublisherOptions {
  readonly network: Pick<Network, 'id' | 'publish'>
  readonly name: string | undefined
  readonly status: () => PeerStatus
  /** Called with each status that is published. */
  readonly onPublished: (status: NetworkStatus) => void
}

export class StatusPublisher {
  readonly view: NetworkView
  readonly #options: StatusPublisherOptions
  readonly #recentDigests = new RecentDigests()
  readonly #epoch = Date.now() - performance.now()
  readonly #started = this.#now()
  readonly #recent: { readonly at: number; readonly inputs: number }[] = []
  readonly #ticking: NodeJS.Timeout
  #publishing: NodeJS.Timeout | undefined

  constructor(options: StatusPublisherOptions) {
    this.#options = options
    this.view = new NetworkView(options.network.id)
    this.#ticking = setInterval(() => this.view.tick(this.#now()), TICK_MS)
    this.#publishPeriodically()
  }

  /** Predictors that the learner has held. */
  addPredictors(trail: readonly HeldPredictor[]): void {
    this.#recentDigests.add(...trail)
  }

  /** A status that gossip brought. Throws StatusError if it is none. */
  receive(from: string, bytes: Uint8Array): void {
    this.view.receive(from, decodeStatus(bytes), this.#now())
  }

  refused(peer: string, reason: string): void {
    this.view.refused(peer, reason, this.#now())
  }

  /** Says goodbye. */
  stop(): void {
    clearInterval(this.#ticking)
    clearTimeout(this.#publishing)
    this.#publish(INTERVAL_MS, true)
  }

  #now(): number {
    return Math.round(this.#epoch + performance.now())
  }

  #publishPeriodically(): void {
    const interval = Math.round(Math.min(LONGEST_INTERVAL_MS, INTERVAL_MS * Math.max(1, this.view.size / CROWD)))
    this.#publish(interval, false)
    // Peers that were started together must not speak in chorus for ever.
    this.#publishing = setTimeout(() => this.#publishPeriodically(), interval * (0.9 + 0.2 * Math.random()))
  }

  #publish(interval: number, leaving: boolean): void {
    const now = this.#now()
    const { network, name, status, onPublished } = this.#options
    const { incarnation, inputs, averageLoss, accuracy, neighbours, predictor, ...rest } = status()
    const { updates, origin } = predictor
    const told: NetworkStatus = {
      version: 1,
      ...(name === undefined ? {} : { name }),
      incarnation,
      started: this.#started,
      uptime: Math.round((now - this.#started) / 100) / 10,
      interval,
      inputs,
      inputsPerSecond: this.#rate(now, inputs),
      ...(averageLoss < 1e15 ? { loss: rounded(averageLoss) } : {}),
      ...(accuracy === undefined ? {} : { accuracy: rounded(accuracy) }),
      sent: rest.sent.bytes,
      received: rest.received.bytes,
      neighbours: neighbours.slice(0, MAX_NEIGHBOURS),
      predictor: { updates, origin, incarnation: predictor.incarnation },
      trail: this.#recentDigests.publish(predictor),
      adopted: rest.adopted,
      discarded: rest.discarded,
      ended: rest.ended,
      ...(leaving ? { leaving } : {})
    }
    network.publish('status', encodeStatus(told))
    this.view.receive(network.id, told, now)
    onPublished(told)
  }

  #rate(at: number, inputs: number): number {
    this.#recent.push({ at, inputs })
    if (this.#recent.length > RATE_INTERVALS + 1) this.#recent.shift()
    const [first] = this.#recent
    return at > first.at ? Math.max(0, Math.round((10_000 * (inputs - first.inputs)) / (at - first.at)) / 10) : 0
  }
}

/** To seven digits: what floats beyond that costs bytes and tells nothing. */
function rounded(value: number): number {
  return Number(value.toPrecision(7))
}

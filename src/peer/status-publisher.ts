/**
 * Publishes this peer's status while at least one peer of the network is watching, passes the statuses of other peers to the
 * network view, and ticks the view. A peer watches while its page is open, and after a drift alarm, because peers merge their
 * alarms. The interval of statuses grows with the number of peers, so that their total rate stays bounded.
 */
import type { Log, Network } from '../network/index.js'
import {
  COMMON_MS,
  DUPLICATED,
  decodeStatus,
  encodeStatus,
  type HeldPredictor,
  MAX_NEIGHBOURS,
  type NetworkStatus,
  type NetworkUpdate,
  NetworkView,
  RecentDigests
} from '../view/index.js'
import type { PeerStatus } from './options.js'

/** Interval of a peer's statuses in milliseconds. It grows in proportion above `LARGE_NETWORK` peers. */
const INTERVAL_MS = 1000
const LARGE_NETWORK = 10
const MAX_INTERVAL_MS = 30_000
/** Statuses are published for this many intervals of a watching peer after its last status, plus a margin in ms. */
const LEASE_INTERVALS = 3
const LEASE_SLACK_MS = 5000
/**
 * Interval of statuses while no peer is watching, in ms: per known peer, and its minimum. These statuses show whether two live
 * peers share an identity.
 */
const RARE_MS = 6000
const LEAST_RARE_MS = 10_000
/** How long a peer watches after an alarm of its own, in ms: alarms of others within this time can have the same cause. */
const ALARM_MS = COMMON_MS
/** Interval of the view's ticks, in milliseconds. */
const TICK_MS = 500
/** Number of intervals over which the rate of inputs is averaged. */
const RATE_INTERVALS = 5

export interface StatusPublisherOptions {
  readonly network: Pick<Network, 'id' | 'publish'>
  readonly name: string | undefined
  readonly status: () => PeerStatus
  readonly log: Log
  /** Called with this peer's status when it is published, and about once a second otherwise. */
  readonly onReport: (status: NetworkStatus) => void
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
  /** Until when another peer watches. */
  #leasedUntil = 0
  /** Until when this peer watches because of an alarm. */
  #alarmedUntil = 0
  #alarms = 0
  #hasProblem = false
  #publishedAt = Number.NEGATIVE_INFINITY

  constructor(options: StatusPublisherOptions) {
    this.#options = options
    this.view = new NetworkView(options.network.id)
    const onUpdate = ({ events }: NetworkUpdate) => {
      for (const { kind, peers } of events)
        if (kind === 'duplicated') options.log('warn', `peer ${peers[0]}: ${DUPLICATED}`, { peer: peers[0] })
    }
    this.view.subscribe(onUpdate, false)
    this.#ticking = setInterval(() => this.#tick(), TICK_MS)
    this.#reportPeriodically()
  }

  /** Adds predictors that the learner held since the last call. */
  addPredictors(recent: readonly HeldPredictor[]): void {
    this.#recentDigests.add(...recent)
  }

  /** Handles a status from gossip. @throws StatusError if it is malformed */
  receive(from: string, bytes: Uint8Array): void {
    const status = decodeStatus(bytes)
    const now = this.#now()
    this.view.receive(from, status, now)
    if (!status.watching || status.leaving) return
    const begins = !this.#isObserved(now)
    this.#leasedUntil = Math.max(this.#leasedUntil, now + LEASE_INTERVALS * status.interval + LEASE_SLACK_MS)
    if (begins) this.view.resume(now)
  }

  /** The problem to report if another live peer has this identity. */
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
    const now = this.#now()
    const status = this.#report(now, { leaving: true })
    if (this.#isObserved(now)) this.#options.network.publish('status', encodeStatus(status))
  }

  #now(): number {
    return Math.round(this.#epoch + performance.now())
  }

  #isWatching(now: number): boolean {
    return this.view.isWatched || now < this.#alarmedUntil
  }

  /** Whether any peer watches, so that statuses are published. */
  #isObserved(now: number): boolean {
    return now < this.#leasedUntil || this.#isWatching(now)
  }

  #tick(): void {
    const now = this.#now()
    if (this.#isObserved(now)) this.view.resume(now)
    else this.view.pause(now)
    this.view.tick(now)
  }

  #reportPeriodically(): void {
    const now = this.#now()
    const isWatching = this.#isWatching(now)
    const status = this.#report(now, isWatching ? { watching: true } : {})
    // Changes are published even if no peer is watching, because they may cause peers to watch.
    const alarms = status.drift?.alarms ?? 0
    const isNews = alarms > this.#alarms || (status.problem === undefined) === this.#hasProblem
    if (alarms > this.#alarms) this.#alarmedUntil = now + ALARM_MS
    this.#alarms = alarms
    this.#hasProblem = status.problem !== undefined
    const isObserved = this.#isObserved(now)
    const isRare = now - this.#publishedAt >= Math.max(LEAST_RARE_MS, RARE_MS * this.view.size)
    if (isNews || isObserved || isRare) {
      this.#publishedAt = now
      this.#options.network.publish('status', encodeStatus(status))
    }
    // Jitter, so that peers that started together do not stay synchronised.
    const wait = (isObserved ? status.interval : INTERVAL_MS) * (0.9 + 0.2 * Math.random())
    this.#publishing = setTimeout(() => this.#reportPeriodically(), wait)
  }

  /** The current status, which is also passed to this peer's own view. */
  #report(now: number, flags: Pick<NetworkStatus, 'watching' | 'leaving'>): NetworkStatus {
    const { network, name, status, onReport } = this.#options
    const interval = Math.round(Math.min(MAX_INTERVAL_MS, INTERVAL_MS * Math.max(1, this.view.size / LARGE_NETWORK)))
    const { incarnation, nonce, inputs, averageLoss, accuracy, metrics, neighbours, predictor, drift, ...rest } =
      status()
    const { updates, origin } = predictor
    const report: NetworkStatus = {
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
      ...flags
    }
    this.view.receive(network.id, report, now)
    onReport(report)
    return report
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

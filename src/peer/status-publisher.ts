/**
 * Builds this peer's status, reports it over the tree, and passes what arrives to the network view: the totals of all peers and the
 * statuses of the nearest ones. Reports are frequent while a peer watches: while its page is open, and after a drift alarm, because
 * the totals show whether other peers have alarms too. A peer also announces its run by gossip, which reaches peers with the same
 * identity.
 */

import { periodically } from '#platform'
import { softwareVersion } from '#runtime'
import type { Figures } from '../learning/index.js'
import { isSignedBy, type Log, type Network } from '../network/index.js'
import {
  type Answer,
  aggregateOf,
  COMMON_MS,
  DUPLICATED,
  decodeRun,
  encodeRun,
  type FoundPeer,
  type HeldPredictor,
  HeldWindow,
  MAX_NEIGHBOURS,
  type NetworkStatus,
  type NetworkUpdate,
  NetworkView,
  type OwnStatus,
  type PeerRow,
  type RunMessage,
  type Subtree,
  sampleHeld
} from '../view/index.js'
import { RunGossip } from './run-gossip.js'
import type { PeerStatus } from './status.js'
import { type SendStatus, StatusExchange } from './status-exchange.js'

/** Interval in which this peer renews its status, in milliseconds. */
const INTERVAL_MS = 1000
/** How long a peer watches after an alarm of its own, in ms: alarms of others within this time can have the same cause. */
const ALARM_MS = COMMON_MS
/** Interval of the ticks of the view, in milliseconds, and their number in an interval, which is the one of ticks while no page is open. */
const TICK_MS = 500
const IDLE_TICKS = INTERVAL_MS / TICK_MS
/** Number of intervals over which the rate of inputs is averaged. */
const RATE_INTERVALS = 5
/** Predictors that a peer held during this many intervals of its reports are comparable with those of its neighbours. */
const HELD_INTERVALS = 2

export interface StatusPublisherOptions {
  readonly network: Pick<Network, 'id' | 'publish'>
  readonly name: string | undefined
  readonly status: () => PeerStatus
  /** Addresses at which tabs can dial this peer, at most 4. @default none */
  readonly addresses?: () => readonly string[]
  /** Called with the announcement of another peer. */
  readonly onRun?: (from: string, message: RunMessage) => void
  /** Whether losses and alarms must not leave this peer. @default false */
  readonly isPrivate?: boolean
  /** Whether the peers choose b, which statuses then contain. @default false */
  readonly adaptsBatch?: boolean
  /** Signs a text with this peer's identity. */
  readonly sign: (text: string) => string
  /** Sends a message over a tree edge. */
  readonly send: SendStatus
  readonly log: Log
  /** Called with this peer's status about once a second. */
  readonly onReport: (status: NetworkStatus) => void
}

interface Sample {
  readonly at: number
  readonly inputs: number
  /** Bytes of frames sent, and what they would be with float32 sums. */
  readonly sent: number
  readonly float32: number
}

export class StatusPublisher {
  readonly view: NetworkView
  readonly exchange: StatusExchange
  readonly #options: StatusPublisherOptions
  readonly #software = softwareVersion()
  readonly #held = new HeldWindow()
  readonly #runs: RunGossip
  readonly #epoch = Date.now() - performance.now()
  readonly #started = this.#now()
  readonly #samples: Sample[] = []
  readonly #stopTicks: () => void
  #ticks = 0
  /** Addresses that it has announced. */
  #addresses = ''
  /** Until when this peer watches because of an alarm. */
  #alarmedUntil = 0
  #alarms = 0
  #hasProblem = false

  constructor(options: StatusPublisherOptions) {
    const { network, log, send } = options
    this.#options = options
    this.view = new NetworkView(network.id)
    this.#runs = new RunGossip(network.id, Math.random)
    const onUpdate = ({ events }: NetworkUpdate) => {
      for (const { kind, peers } of events)
        if (kind === 'duplicated') log('warn', `peer ${peers[0]}: ${DUPLICATED}`, { peer: peers[0] })
    }
    this.view.subscribe(onUpdate, false)
    this.exchange = new StatusExchange(this.#own(this.#now(), {}), isSignedBy, send, () => this.#now())
    this.#stopTicks = periodically(TICK_MS, () => this.#tick())
    this.#renew()
  }

  /** Adds predictors that the learner held since the last call. */
  addPredictors(recent: readonly HeldPredictor[]): void {
    this.#held.add(recent, this.#now())
  }

  /** Handles the announcement of a run from gossip. @throws StatusError if it is malformed */
  receiveRun(from: string, bytes: Uint8Array): void {
    const message = decodeRun(bytes)
    const now = this.#now()
    this.view.announced(from, message, now)
    this.#runs.receive(message, now)
    this.#options.onRun?.(from, message)
  }

  /** The problem to report if another live peer has this identity. */
  get duplicate(): string | undefined {
    return this.view.isDuplicated(this.#options.network.id) ? DUPLICATED : undefined
  }

  /** The connection to a peer ended. */
  lost(peer: string): void {
    // In a large network, connections without an edge are closed when they are idle.
    if (!this.view.isPartial) this.view.suspect(peer, this.#now())
  }

  refused(peer: string, reason: string): void {
    this.view.refused(peer, reason, this.#now())
  }

  /** The peers whose id or name contains a text. */
  async search(text: string): Promise<FoundPeer[]> {
    const answers = await this.exchange.search(text)
    const found = answers.map(answer => ({ ...this.#rowsOf(answer)[0], path: answer.path }))
    const own = this.view.find(text).filter(({ id }) => id === this.view.self)
    return [...own.map(row => ({ ...row, path: [] })), ...found]
  }

  /** The peers behind a path of tree neighbours; undefined if there is no such path. */
  async subtree(path: readonly string[]): Promise<Subtree | undefined> {
    const answer = await this.exchange.subtree(path)
    return answer && { network: this.view.describe(answer.network), peers: this.#rowsOf(answer) }
  }

  /** Reports the current status at once, for example before this peer leaves the tree. */
  reportNow(): void {
    const now = this.#now()
    this.exchange.tree.setOwn(this.#report(now, {}), true)
    this.exchange.tick(this.#isWatching(now))
  }

  /** Stops after a last report. */
  stop(): void {
    this.#stopTicks()
    this.leave()
    this.exchange.stop()
  }

  /** Reports that the peer leaves. */
  leave(): void {
    const now = this.#now()
    this.exchange.tree.setOwn(this.#report(now, { leaving: true }), true)
    this.exchange.tick(this.#isWatching(now))
  }

  #now(): number {
    return Math.round(this.#epoch + performance.now())
  }

  #isWatching(now: number): boolean {
    return this.view.isWatched || now < this.#alarmedUntil
  }

  #tick(): void {
    const now = this.#now()
    const { tree } = this.exchange
    const isWatching = this.#isWatching(now)
    if (this.#ticks % IDLE_TICKS === 0) this.#renew()
    if (this.#ticks++ % IDLE_TICKS > 0 && !isWatching && !tree.isWatched) return
    this.exchange.tick(isWatching)
    const [totals, rows] = [tree.network(now), tree.rows(now)]
    this.view.setTotals(totals, totals.peers > rows.length + 1)
    for (const { id, status, interval, below } of rows) {
      this.view.receive(id, { ...status, interval: Math.max(INTERVAL_MS, interval) }, now, below)
    }
    this.view.tick(now)
    const doubt = this.view.takeDoubt()
    if (doubt !== undefined) this.#runs.doubted(doubt, totals.peers, now)
    const addresses = this.#options.addresses?.() ?? []
    if (addresses.join() !== this.#addresses) this.#runs.changed()
    const due = this.#runs.takeDue(totals.peers, now)
    if (due === undefined) return
    const { incarnation, nonce } = this.#options.status()
    this.#addresses = addresses.join()
    const run = { incarnation, nonce, started: this.#started, uptime: this.#uptime(now) }
    const interval = this.#runs.intervalOf(totals.peers)
    this.#options.network.publish(
      'run',
      encodeRun({ ...run, interval, ...due, addresses: addresses.length > 0 ? addresses : undefined })
    )
  }

  /** Renews this peer's status. */
  #renew(): void {
    const now = this.#now()
    const alarms = this.#alarms
    const hadProblem = this.#hasProblem
    const own = this.#report(now, {})
    this.#hasProblem = own.row.status.problem !== undefined
    this.exchange.tree.setOwn(own, this.#alarms > alarms || this.#hasProblem !== hadProblem)
  }

  /** The current status, which is also passed to this peer's own view. */
  #report(now: number, flags: Pick<NetworkStatus, 'leaving'>): OwnStatus {
    const own = this.#own(now, flags)
    const { network, onReport } = this.#options
    // This one is renewed every second.
    const trail = this.#trail(now, HELD_INTERVALS * INTERVAL_MS)
    const peer = this.#options.status()
    const privacy = peer.privacy && { epsilon: peer.privacy.epsilon, spent: peer.privacy.spent }
    const status = { ...own.row.status, ...figuresOf(peer), trail, privacy }
    this.view.receive(network.id, status, now)
    onReport(status)
    return own
  }

  #own(now: number, flags: Pick<NetworkStatus, 'leaving'>): OwnStatus {
    const { network, name, sign } = this.#options
    const peer = this.#options.status()
    const { incarnation, nonce, inputs, neighbours, predictor, ...rest } = peer
    const { isPrivate = false, adaptsBatch = false } = this.#options
    const drift = isPrivate ? undefined : rest.drift
    const { updates, origin } = predictor
    this.#sample(now, inputs, rest.sent)
    const alarms = drift?.alarms ?? 0
    if (alarms > this.#alarms) this.#alarmedUntil = now + ALARM_MS
    this.#alarms = alarms
    const window = HELD_INTERVALS * (this.exchange?.tree.interval ?? INTERVAL_MS)
    const status: NetworkStatus = {
      version: 1,
      name,
      software: this.#software,
      incarnation,
      nonce,
      started: this.#started,
      uptime: this.#uptime(now),
      interval: INTERVAL_MS,
      inputs,
      inputsPerSecond: this.#perSecond('inputs'),
      ...(isPrivate ? undefined : figuresOf(peer)),
      sent: rest.sent.bytes,
      received: rest.received.bytes,
      ...this.#sendRates(),
      neighbours: neighbours.slice(0, MAX_NEIGHBOURS),
      predictor: { updates, origin, incarnation: predictor.incarnation },
      trail: this.#trail(now, window),
      batch: adaptsBatch ? rest.batch : undefined,
      adopted: rest.adopted,
      discarded: rest.discarded,
      problem: rest.problem,
      skipped: rest.skipped || undefined,
      ended: rest.ended,
      ...flags
    }
    const text = JSON.stringify(status)
    let signature: string | undefined
    return {
      row: {
        id: network.id,
        text,
        // Few statuses are sent.
        get signature() {
          signature ??= sign(text)
          return signature
        },
        status
      },
      totals: aggregateOf(status, this.#held.sample(predictor, now, window), now < this.#alarmedUntil)
    }
  }

  /** Digests of the predictors of the last `ms`, the current one first. */
  #trail(now: number, ms: number): string[] {
    const held = this.#held.sample(this.#options.status().predictor, now, ms)
    return [...new Set([held[0], ...sampleHeld(held)].map(([, digest]) => digest))]
  }

  #rowsOf({ rows }: Answer): PeerRow[] {
    return rows.map(({ id, status, below }) => this.view.rowOf(id, status, this.#now(), below))
  }

  #uptime(now: number): number {
    return Math.round((now - this.#started) / 100) / 10
  }

  #sample(at: number, inputs: number, { bytes, kinds }: PeerStatus['sent']): void {
    this.#samples.push({ at, inputs, sent: bytes, float32: bytes - kinds.sums - kinds.steps + kinds.float32 })
    if (this.#samples.length > RATE_INTERVALS + 1) this.#samples.shift()
  }

  /** With one decimal. */
  #perSecond(key: 'inputs' | 'sent' | 'float32'): number {
    const [first] = this.#samples
    const last = this.#samples[this.#samples.length - 1]
    return last.at > first.at
      ? Math.max(0, Math.round((10_000 * (last[key] - first[key])) / (last.at - first.at)) / 10)
      : 0
  }

  #sendRates(): Pick<NetworkStatus, 'sendRate' | 'float32Rate'> {
    const sendRate = Math.round(this.#perSecond('sent'))
    const float32Rate = Math.round(this.#perSecond('float32'))
    return { sendRate: sendRate || undefined, float32Rate: float32Rate > sendRate ? float32Rate : undefined }
  }
}

/** What depends on the losses of inputs. */
function figuresOf({ averageLoss, accuracy, metrics, drift }: PeerStatus): Partial<NetworkStatus> {
  return {
    loss: averageLoss < 1e15 ? rounded(averageLoss) : undefined,
    accuracy: rounded(accuracy),
    ...recentOf(metrics),
    drift: drift?.alarms ? { alarms: drift.alarms, inputs: drift.recent[drift.recent.length - 1].inputs } : undefined
  }
}

/** The figures of the smallest window of inputs, and of the windows by time. */
function recentOf(metrics: PeerStatus['metrics']): Pick<NetworkStatus, 'recent' | 'windows'> {
  const recent = metrics && shortened(metrics.recent[0])
  const windows = metrics?.byTime?.windows.flatMap(({ seconds, ...figures }) => {
    const short = shortened(figures)
    return short === undefined ? [] : [{ seconds, ...short }]
  })
  return { recent, windows: windows?.length ? windows : undefined }
}

function shortened({ inputs, loss, accuracy, rmse, r2 }: Figures): NetworkStatus['recent'] {
  if (inputs === 0 || !(loss < 1e15)) return undefined
  return {
    inputs,
    loss: rounded(loss),
    accuracy: rounded(accuracy),
    rmse: rounded(rmse),
    r2: r2 !== undefined && r2 > -1e15 ? rounded(r2) : undefined
  }
}

/** Rounds to seven digits, because further digits cost bytes without information. */
function rounded<Value extends number | undefined>(value: Value): Value {
  return value === undefined ? value : (Number(value.toPrecision(7)) as Value)
}

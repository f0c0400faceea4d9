/** The demo's events (a crash and a restart, a partition and its healing, convergence), the pace of its inputs, and what it is compared with. */
import { setImmediate as giveWay, setTimeout as sleep } from 'node:timers/promises'
import { CodedError } from '../../base/errors.js'
import { openStream, type StreamOptions } from '../../data/index.js'
import type { Execution } from '../../l2l/index.js'
import type { SerialReport } from '../../learning/index.js'
import type { LearningSpec } from '../../peer/index.js'
import { TrainingJob } from '../../task/training-job.js'
import { treeComponents } from '../../view/groups.js'
import type { Reference } from '../../view/index.js'
import { formatNumber, print, printJson } from '../output/output.js'
import type { PeerObject } from '../peer/attend.js'
import type { Cluster } from './cluster.js'
import { Table } from './watch.js'

export interface Event {
  readonly atMs: number
  readonly kind: 'started' | 'linked' | 'killed' | 'restarted' | 'partitioned' | 'healed' | 'agreed'
  readonly peer: number
}

export const PEERS = 5
/** Times of the events, as shares of the inputs. */
const KILL_AT = 0.15
const PARTITION_AT = 0.5
const HEAL_AT = 0.7
const DOWN_MS = 2000
/** Minimum duration of the partition, so that the page shows it. */
const SPLIT_MS = 7000
const REDRAW_MS = 250
const PACE_MS = 25
/** A peer learns when it holds a predictor with this share of the updates of the newest one. */
const CAUGHT_UP = 0.9
/** Time limit for convergence after the last input, in milliseconds. */
export const AGREE_MS = 30_000

/** Runs the events. */
export class Stage {
  readonly events: Event[] = []
  readonly #cluster: Cluster
  readonly #quiet: boolean
  readonly #start: number
  readonly #table = new Table()
  #groups: readonly (readonly number[])[] = [[0, 1, 2, 3, 4]]
  #news = ''
  /** By place: the inputs for each update that the peer was told last. */
  readonly #told = new Map<number, number>()
  readonly #rate: number
  readonly #rows: number
  /** Places of the peers that learn: those that have been linked since they started, and have caught up with the others. */
  readonly #learning = new Set<number>()
  /** Share of the inputs after which the next event is due. */
  #nextAt = 0
  agreed = false

  /**
   * @param rate maximum number of inputs per second of a peer
   * @param rows number of inputs of all peers
   * @param quiet whether nothing is printed
   */
  constructor(
    cluster: Cluster,
    { rate, rows, quiet, start }: { rate: number; rows: number; quiet: boolean; start: number }
  ) {
    this.#cluster = cluster
    this.#rate = rate
    this.#rows = rows
    this.#quiet = quiet
    this.#start = start
  }

  async play(): Promise<void> {
    const redraw = setInterval(() => this.#draw(), REDRAW_MS)
    const pacing = setInterval(() => this.#pace(), PACE_MS)
    try {
      const places = Array.from({ length: PEERS }, (_, place) => place)
      await Promise.all(
        places.map(async place => {
          await this.#cluster.start(place)
          this.#event('started', place, `peer ${place + 1} started`)
        })
      )
      await this.#until(() => this.#areLinked)
      this.#event('linked', 0, 'the five peers are linked, and their streams begin')
      await this.#upTo(KILL_AT)
      this.#learning.delete(2)
      this.#told.delete(2)
      await this.#cluster.kill(2)
      this.#event('killed', 2, 'peer 3 was killed (SIGKILL)')
      const back = this.#restart(2)
      await Promise.all([this.#upTo(PARTITION_AT), back])
      this.#separate('partitioned', [0, 1], [2, 3, 4])
      await Promise.all([this.#upTo(HEAL_AT), sleep(SPLIT_MS)])
      // Until it has adopted the better predictor, the other side does not learn.
      this.#learning.clear()
      this.#separate('healed', [0, 1, 2, 3, 4])
      this.#nextAt = Number.POSITIVE_INFINITY
      await this.#until(() => this.#cluster.peers.every(peer => peer?.ended))
      const limit = performance.now() + AGREE_MS
      await this.#until(() => this.#cluster.agreed || performance.now() > limit)
      this.agreed = this.#cluster.agreed
      if (this.agreed) this.#event('agreed', 0, 'all five hold the same predictor')
    } finally {
      clearInterval(redraw)
      clearInterval(pacing)
      this.#draw()
    }
  }

  /** Starts a peer again after a while; resolves when it learns. */
  async #restart(place: number): Promise<void> {
    await sleep(DOWN_MS)
    await this.#cluster.start(place)
    this.#event(
      'restarted',
      place,
      `peer ${place + 1} restarted: its state from the disk, the current predictor from its neighbours`
    )
    await this.#until(() => this.#learning.has(place))
  }

  /** Waits until a share of the inputs has been learned. */
  async #upTo(share: number): Promise<void> {
    this.#nextAt = share
    await this.#until(() => this.#progress >= share)
  }

  get #areLinked(): boolean {
    const peers = this.#cluster.peers.filter(peer => peer !== undefined)
    return peers.length === PEERS && treeComponents(peers).length === 1
  }

  /** Lets the streams of the peers go on as far as the machine allows. */
  #pace(): void {
    const { peers } = this.#cluster
    const newest = Math.max(...peers.map(peer => peer?.updates ?? 0))
    for (const [place, peer] of peers.entries()) {
      const isLinked = peer !== undefined && peer.neighbours.length > 0
      if (this.#nextAt > 0 && isLinked && peer.updates >= CAUGHT_UP * newest) this.#learning.add(place)
    }
    const isHeld = this.#progress >= this.#nextAt
    const paced = peers.map((peer, place) => (isHeld || !this.#learning.has(place) ? undefined : peer))
    for (const [place, share] of inputsPerUpdate(paced, this.#groups).entries()) {
      if (share === (this.#told.get(place) ?? 0)) continue
      this.#told.set(place, share)
      this.#cluster.pace(place, this.#rate, share)
    }
  }

  #draw(): void {
    if (!this.#quiet) this.#table.draw(this.#cluster, this.#groups, this.#news)
  }

  #separate(kind: 'partitioned' | 'healed', ...groups: readonly (readonly number[])[]): void {
    this.#groups = groups
    this.#cluster.partition(...groups)
    const news = {
      partitioned: 'partition: peers 1 and 2 | peers 3, 4 and 5',
      healed: 'the partition has healed: the side with fewer updates adopts the better predictor'
    }
    this.#event(kind, 0, news[kind])
  }

  /** Share of the inputs that have been learned. */
  get #progress(): number {
    return this.#cluster.peers.reduce((sum, peer) => sum + (peer?.inputs ?? 0), 0) / this.#rows
  }

  #event(kind: Event['kind'], place: number, news: string): void {
    const atMs = Math.round(performance.now() - this.#start)
    this.events.push({ atMs, kind, peer: place })
    this.#news = `${(atMs / 1000).toFixed(1)} s  ${news}`
    if (!this.#quiet && process.stdout.isTTY !== true) print(this.#news)
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) await sleep(50)
  }
}

/** What the pace depends on. */
export interface PacedPeer {
  readonly batch: number
  /** Whether its stream has ended. */
  readonly ended: boolean
}

/**
 * @param peers by place; undefined for one that does not take part
 * @param groups places of the peers that can reach each other
 * @returns by place, the number of inputs for each update of the predictor; 0 for a peer that does not take part
 */
export function inputsPerUpdate(
  peers: readonly (PacedPeer | undefined)[],
  groups: readonly (readonly number[])[]
): number[] {
  const shares = peers.map(() => 0)
  for (const group of groups) {
    const places = group.filter(place => peers[place]?.ended === false)
    // One more than its part, because a gradient can come too late.
    for (const place of places) shares[place] = Math.floor((peers[place] as PacedPeer).batch / places.length) + 1
  }
  return shares
}

/** The peers did not converge to one predictor. */
export class DisagreementError extends CodedError {
  static override readonly code = 'ERR_DISAGREEMENT'
}

/** Prints the result. @throws DisagreementError */
export function conclude(
  json: boolean,
  { serial, isolated }: Comparison,
  stage: Stage,
  cluster: Cluster,
  start: number
): void {
  const peers = cluster.peers.filter((peer): peer is PeerObject => peer !== undefined)
  const together = pooled(peers)
  const seconds = (performance.now() - start) / 1000
  const { agreed, events } = stage
  const violations = cluster.violations.length
  if (json) {
    printJson({ command: 'demo', peers, agreed, cluster: together, serial, isolated, events, violations, seconds })
  } else {
    print('')
    const line = (what: string, { averageLoss, accuracy }: { averageLoss: number; accuracy?: number }) =>
      print(
        `${what.padEnd(34)} loss ${averageLoss.toFixed(4)}${accuracy === undefined ? '' : `   accuracy ${(100 * accuracy).toFixed(2)} %`}`
      )
    line('five peers together, with faults', together)
    line('one learner given every input', serial)
    line('five learners, each alone', isolated)
    const { predictor } = peers[0]
    print(
      `\n${agreed ? 'All five agree' : 'The peers do not agree'}: ${formatNumber(predictor.updates)} updates, ${seconds.toFixed(0)} s in all.`
    )
    for (const violation of cluster.violations) print(`violation: ${violation}`)
  }
  if (!agreed)
    throw new DisagreementError(`the peers did not agree within ${AGREE_MS / 1000} s of the end: please report it`)
  if (violations > 0) throw new DisagreementError(cluster.violations[0])
}

export interface Result {
  readonly averageLoss: number
  readonly accuracy?: number
}

/** Results without a network. */
export interface Comparison {
  readonly serial: Result
  readonly isolated: Result
  /** Their progressive losses, for the page. */
  readonly references: readonly Reference[]
}

/** Trains one learner on every input, and one learner per peer on that peer's inputs. */
export async function compare(spec: LearningSpec, stream: StreamOptions, execution: Execution): Promise<Comparison> {
  const serial = await learnSerially(spec, stream, execution)
  const alone: Run[] = []
  for (let place = 0; place < PEERS; place++) {
    const maxRows = stream.maxRows === undefined ? undefined : Math.ceil(stream.maxRows / PEERS)
    alone.push(await learnSerially(spec, { ...stream, maxRows, shard: { index: place, count: PEERS } }, execution))
  }
  const shortest = alone.reduce((a, b) => (b.curve.length < a.curve.length ? b : a))
  const together = shortest.curve.map(([inputs], place) => {
    const sum = alone.reduce((total, { curve }) => total + curve[place][1], 0)
    return [inputs, sum / alone.length] as const
  })
  return {
    serial: pooled([serial.report]),
    isolated: pooled(alone.map(({ report }) => report)),
    references: [
      // The page's axis is a peer's inputs, a fifth of the network's.
      {
        name: 'serial',
        points: thinned(serial.curve).map(([inputs, loss]) => [Math.round(inputs / PEERS), loss] as const)
      },
      { name: 'isolated', points: thinned(together) }
    ]
  }
}

interface Run {
  readonly report: SerialReport
  readonly curve: readonly (readonly [inputs: number, loss: number])[]
}

/** Trains with the peers' model, rule and batch size in this process, and yields to the event loop in between. */
async function learnSerially(spec: LearningSpec, stream: StreamOptions, execution: Execution): Promise<Run> {
  const { trainer } = await TrainingJob.start({ spec, execution })
  const curve: [number, number][] = []
  for await (const examples of await openStream(stream)) {
    trainer.learn(examples)
    const { inputs, averageLoss } = trainer.report()
    if (averageLoss !== undefined) curve.push([inputs, averageLoss])
    await giveWay()
  }
  const report = trainer.report()
  trainer.finish()
  return { report, curve }
}

/** Maximum number of points of a curve. They are denser at the start, because the axis is logarithmic. */
const POINTS = 120

function thinned(curve: Run['curve']): Run['curve'] {
  const [least, most] = [curve[0]?.[0] ?? 1, curve.at(-1)?.[0] ?? 1]
  let due = least
  return curve.filter(([inputs], place) => {
    if (inputs < due && place < curve.length - 1) return false
    due = inputs * (most / least) ** (1 / POINTS)
    return true
  })
}

/** Inputs of the whole run. */
export async function rowsOf(stream: StreamOptions): Promise<number> {
  const { passes = 1, maxRows = Number.POSITIVE_INFINITY } = stream
  let rows = 0
  for await (const examples of await openStream({ ...stream, passes: 1 })) rows += examples.size
  return Math.min(rows * passes, maxRows)
}

/** The mean over the inputs of several learners. */
export function pooled(reports: readonly { inputs: number; averageLoss?: number; accuracy?: number }[]): Result {
  const inputs = reports.reduce((sum, report) => sum + report.inputs, 0)
  const mean = (of: (report: (typeof reports)[number]) => number | undefined) =>
    reports.reduce((sum, report) => sum + (of(report) ?? 0) * report.inputs, 0) / Math.max(1, inputs)
  const accuracy = reports.every(report => report.accuracy === undefined) ? undefined : mean(report => report.accuracy)
  return { averageLoss: mean(report => report.averageLoss), accuracy }
}

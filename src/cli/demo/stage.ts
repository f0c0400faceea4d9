/** The demo's events: a crash and a restart, a partition and its healing, convergence. */
import { setTimeout as sleep } from 'node:timers/promises'
import { treeComponents } from '../../view/groups.js'
import { print } from '../output/output.js'
import type { Cluster } from './cluster.js'
import { inputsPerUpdate } from './pacer.js'
import { Table } from './table.js'

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

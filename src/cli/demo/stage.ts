/** The demo's events: a crash and a restart, a partition and its healing, convergence. */
import { setTimeout as sleep } from 'node:timers/promises'
import { print } from '../output/output.js'
import type { Cluster } from './cluster.js'
import { Table } from './table.js'

export interface Event {
  readonly atMs: number
  readonly kind: 'started' | 'killed' | 'restarted' | 'partitioned' | 'healed' | 'agreed'
  readonly peer: number
}

export const PEERS = 5
/** Times of the events, as shares of the inputs. */
const KILL_AT = 0.15
const PARTITION_AT = 0.4
const HEAL_AT = 0.7
const DOWN_MS = 2000
const REDRAW_MS = 250
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
  agreed = false

  /** @param quiet whether nothing is printed */
  constructor(cluster: Cluster, quiet: boolean, start: number) {
    this.#cluster = cluster
    this.#quiet = quiet
    this.#start = start
  }

  /** @param onRunning called once all peers have started */
  async play(rows: number, onRunning: () => void): Promise<void> {
    const redraw = setInterval(() => this.#draw(), REDRAW_MS)
    try {
      for (let place = 0; place < PEERS; place++) {
        await this.#cluster.start(place)
        this.#event('started', place, `peer ${place + 1} started`)
      }
      onRunning()
      const share = rows / PEERS
      await this.#until(() => this.#progress(share) >= KILL_AT)
      await this.#cluster.kill(2)
      this.#event('killed', 2, 'peer 3 was killed (SIGKILL)')
      await sleep(DOWN_MS)
      await this.#cluster.start(2)
      this.#event(
        'restarted',
        2,
        'peer 3 restarted: its state from the disk, the current predictor from its neighbours'
      )
      await this.#until(() => this.#progress(share) >= PARTITION_AT)
      this.#separate('partitioned', [0, 1], [2, 3, 4])
      await this.#until(() => this.#progress(share) >= HEAL_AT)
      this.#separate('healed', [0, 1, 2, 3, 4])
      await this.#until(() => this.#cluster.peers.every(peer => peer?.ended))
      const limit = performance.now() + AGREE_MS
      await this.#until(() => this.#cluster.agreed || performance.now() > limit)
      this.agreed = this.#cluster.agreed
      if (this.agreed) this.#event('agreed', 0, 'all five hold the same predictor')
    } finally {
      clearInterval(redraw)
      this.#draw()
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

  #progress(share: number): number {
    const inputs = this.#cluster.peers.reduce((sum, peer) => sum + (peer?.inputs ?? 0), 0)
    return inputs / (share * PEERS)
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

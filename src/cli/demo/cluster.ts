/** The demo's peer processes: starts, kills, restarts and partitions them, and checks the statuses that they print. */

import { type ChildProcess, fork } from 'node:child_process'
import { createInterface } from 'node:readline'
import { CodedError } from '../../base/errors.js'
import type { NetworkStatus } from '../../view/index.js'
import type { Order, PeerObject, Told } from '../peer/attend.js'

/** A member of the cluster; its process may change. */
export interface Place {
  readonly id: string
  readonly args: readonly string[]
}

export interface ClusterListener {
  /** A peer has published a status. */
  readonly status: (id: string, status: NetworkStatus) => void
  /** A peer was killed. */
  readonly lost: (id: string) => void
  /** A peer has ended unexpectedly. */
  readonly failed: (error: Error) => void
}

const MAIN = new URL('../main.js', import.meta.url)

/** A peer process ended unexpectedly. */
export class PeerDiedError extends CodedError {
  static override readonly code = 'ERR_PEER_DIED'
}

export class Cluster {
  readonly places: readonly Place[]
  readonly #processes: (ChildProcess | undefined)[]
  readonly #latest: (PeerObject | undefined)[]
  readonly #violations: string[] = []
  readonly #digests = new Map<string, string>()
  readonly #listener: ClusterListener
  #stopping = false

  constructor(places: readonly Place[], listener: ClusterListener) {
    this.places = places
    this.#listener = listener
    this.#processes = places.map(() => undefined)
    this.#latest = places.map(() => undefined)
  }

  /** Each peer's last status; undefined before the first of its process. */
  get peers(): readonly (PeerObject | undefined)[] {
    return this.#latest
  }

  /** Violated properties. */
  get violations(): readonly string[] {
    return this.#violations
  }

  isUp(place: number): boolean {
    return this.#processes[place] !== undefined
  }

  /** Starts a member's process; resolves with its first status. */
  start(place: number): Promise<void> {
    const child = fork(MAIN, ['peer', '--json', '--http', 'off', '--log-level', 'error', ...this.places[place].args], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc']
    })
    this.#processes[place] = child
    this.#latest[place] = undefined
    child.on('message', ({ peer, status }: Told) => {
      if (this.#processes[place] !== child) return
      if (status) this.#listener.status(this.places[place].id, status)
      if (peer && !this.#stopping) this.#receive(place, peer)
    })
    let complaint = ''
    child.stderr?.on('data', (text: Buffer) => {
      complaint = (complaint + text.toString()).slice(-2000)
    })
    return new Promise(resolve => {
      createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', line => {
        // In between, its messages are newer: they come with each change.
        if (this.#latest[place] === undefined || this.#stopping) this.#receive(place, JSON.parse(line) as PeerObject)
        resolve()
      })
      child.once('exit', code => {
        const wanted = this.#stopping || this.#processes[place] !== child
        if (this.#processes[place] === child) this.#processes[place] = undefined
        if (!wanted)
          this.#listener.failed(new PeerDiedError(`peer ${place + 1} ended with code ${code}: ${complaint.trim()}`))
      })
    })
  }

  /** kill -9. */
  async kill(place: number): Promise<void> {
    const child = this.#processes[place]
    this.#processes[place] = undefined
    if (child === undefined) return
    const gone = new Promise(resolve => child.once('exit', resolve))
    child.kill('SIGKILL')
    await gone
    this.#listener.lost(this.places[place].id)
  }

  /** Partitions the peers: links between groups are closed and refused. One group heals the partition. */
  partition(...groups: readonly (readonly number[])[]): void {
    for (const group of groups) {
      const others = groups.filter(other => other !== group).flat()
      const block = others.map(place => this.places[place].id)
      for (const place of group) this.#send(place, { block })
    }
  }

  /** Sets the rate of a member's stream, and the maximum number of inputs between two updates. */
  pace(place: number, rate: number, perUpdate: number): void {
    this.#send(place, { pace: { rate, perUpdate } })
  }

  #send(place: number, order: Order): void {
    const child = this.#processes[place]
    if (child?.connected) child.send(order)
  }

  /** Whether all running peers hold the same predictor. */
  get agreed(): boolean {
    const names = this.#latest.map(peer => peer && `${key(peer)}/${peer.predictor.digest}`)
    return names.every(name => name !== undefined && name === names[0])
  }

  /** Ends all processes, each with a final status. */
  async stop(): Promise<void> {
    this.#stopping = true
    const ended = this.#processes.map(child => child && new Promise(resolve => child.once('exit', resolve)))
    for (const child of this.#processes) child?.kill('SIGTERM')
    await Promise.all(ended)
  }

  #receive(place: number, status: PeerObject): void {
    const before = this.#latest[place]
    this.#latest[place] = status
    if (status.predictor.updates === 0) return
    // Property 1: one id, one content.
    const digest = this.#digests.get(key(status))
    if (digest !== undefined && digest !== status.predictor.digest)
      this.#violations.push(`two predictors have the id ${key(status)}`)
    this.#digests.set(key(status), status.predictor.digest)
    // Property 2: ids never get worse, except after a restart from a checkpoint.
    if (before && status.updates < before.updates && status.incarnation === before.incarnation) {
      this.#violations.push(`peer ${place + 1} went back from ${before.updates} to ${status.updates} updates`)
    }
  }
}

function key({ predictor: { updates, origin, incarnation } }: PeerObject): string {
  return `${updates}@${origin}#${incarnation}`
}

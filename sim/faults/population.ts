/** The state of each node, changed by faults. A fault that does not apply to the node's state has no effect. */
import type { Fault } from './schedule.js'

type State = 'up' | 'paused' | 'down' | 'absent'
/** A fault of one node. */
export type NodeFault = Extract<Fault, { readonly node: number }>

/** State transitions of a node by fault. */
const TRANSITIONS: Readonly<Record<NodeFault['kind'], { readonly from: readonly State[]; readonly to: State }>> = {
  crash: { from: ['up', 'paused'], to: 'down' },
  restart: { from: ['down'], to: 'up' },
  pause: { from: ['up'], to: 'paused' },
  resume: { from: ['paused'], to: 'up' },
  hang: { from: ['up'], to: 'up' },
  unhang: { from: ['up'], to: 'up' },
  // A paused process cannot announce that it leaves.
  leave: { from: ['up'], to: 'absent' },
  join: { from: ['absent'], to: 'up' }
}

/** The nodes of a run: which are up, paused, down or absent, and how often each has restarted. */
export class Population {
  readonly #states: State[]
  /** Number of restarts of each node, −1 before it first joins. Messages and timers are bound to a lifetime. */
  readonly #lifetimes: number[]

  constructor(nodes: number, faults: readonly Fault[]) {
    this.#states = new Array<State>(nodes).fill('up')
    this.#lifetimes = new Array<number>(nodes).fill(0)
    const seen = new Set<number>()
    for (const fault of faults) {
      if (!('node' in fault) || seen.has(fault.node)) continue
      seen.add(fault.node)
      if (fault.kind !== 'join' || fault.node >= nodes) continue
      this.#states[fault.node] = 'absent'
      this.#lifetimes[fault.node] = -1
    }
  }

  /** Whether the node serves inputs and receives messages. */
  isUp(node: number): boolean {
    return this.#states[node] === 'up'
  }

  isPaused(node: number): boolean {
    return this.#states[node] === 'paused'
  }

  /** Whether the node has a process, running or paused. */
  isAlive(node: number): boolean {
    return this.isUp(node) || this.isPaused(node)
  }

  lifetime(node: number): number {
    return this.#lifetimes[node]
  }

  /** @returns whether the fault had an effect */
  apply({ kind, node }: NodeFault): boolean {
    const { from, to } = TRANSITIONS[kind]
    if (!from.includes(this.#states[node])) return false
    this.#states[node] = to
    if (kind === 'restart' || kind === 'join') this.#lifetimes[node]++
    return true
  }
}

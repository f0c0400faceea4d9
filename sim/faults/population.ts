/**
 * Which nodes are there and running: the life of each node as faults change it. A fault that does not fit the node's
 * state changes nothing.
 */
import type { Fault } from './schedule.js'

type State = 'up' | 'paused' | 'down' | 'absent'
export type NodeFault = Extract<Fault, { readonly node: number }>

/** From which states a fault takes a node, and where to. */
const STEPS: Readonly<Record<NodeFault['kind'], { readonly from: readonly State[]; readonly to: State }>> = {
  crash: { from: ['up', 'paused'], to: 'down' },
  restart: { from: ['down'], to: 'up' },
  pause: { from: ['up'], to: 'paused' },
  resume: { from: ['paused'], to: 'up' },
  // A stopped process cannot say goodbye.
  leave: { from: ['up'], to: 'absent' },
  join: { from: ['absent'], to: 'up' }
}

export class Population {
  readonly #states: State[]
  /** Of each node, −1 before it first joins: what belongs to an earlier life does not reach the present one. */
  readonly #lives: number[]

  constructor(nodes: number, faults: readonly Fault[]) {
    this.#states = new Array<State>(nodes).fill('up')
    this.#lives = new Array<number>(nodes).fill(0)
    const seen = new Set<number>()
    for (const fault of faults) {
      if (!('node' in fault) || seen.has(fault.node)) continue
      seen.add(fault.node)
      if (fault.kind !== 'join' || fault.node >= nodes) continue
      this.#states[fault.node] = 'absent'
      this.#lives[fault.node] = -1
    }
  }

  /** Whether the node serves inputs and hears messages now. */
  isUp(node: number): boolean {
    return this.#states[node] === 'up'
  }

  isPaused(node: number): boolean {
    return this.#states[node] === 'paused'
  }

  /** Whether the node has a process, stopped or not. */
  isAlive(node: number): boolean {
    return this.isUp(node) || this.isPaused(node)
  }

  life(node: number): number {
    return this.#lives[node]
  }

  /** Answers whether the fault changed anything. */
  apply({ kind, node }: NodeFault): boolean {
    const { from, to } = STEPS[kind]
    if (!from.includes(this.#states[node])) return false
    this.#states[node] = to
    if (kind === 'restart' || kind === 'join') this.#lives[node]++
    return true
  }
}

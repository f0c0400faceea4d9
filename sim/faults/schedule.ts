/**
 * Fault schedules as plain data, so that all algorithms are run under the same faults, and a schedule can be printed, stored as
 * JSON, replayed and shrunk. Any list of faults is a valid schedule: a fault that does not apply (such as the restart of a
 * node that is up) has no effect.
 */
import * as z from 'zod'

/**
 * The process ends: its memory and the messages in flight to it are lost. Its machine then closes its sessions, unless the crash
 * is silent (the machine is down as well): neighbours then detect it by timeout.
 */
export interface Crash {
  readonly time: number
  readonly kind: 'crash'
  readonly node: number
  readonly silent?: boolean
}

/**
 * A crashed node restarts: as a new incarnation or, if the disk with its key is lost, under a new identity. If the state is reset and
 * the key kept, its runs are numbered from 1 again.
 */
export interface Restart {
  readonly time: number
  readonly kind: 'restart'
  readonly node: number
  readonly disk: 'kept' | 'lost' | 'reset'
}

/** A paused process has no inputs and no ticks. Messages are queued and processed when it resumes. */
export interface Pause {
  readonly time: number
  readonly kind: 'pause' | 'resume'
  readonly node: number
}

/** A node leaves and closes its sessions, or joins under a new identity. A node whose first fault is `join` is absent until then. */
export interface Membership {
  readonly time: number
  readonly kind: 'join' | 'leave'
  readonly node: number
}

/**
 * Blocks messages between different sides, and replaces an earlier partition. A one-way partition blocks only messages from a
 * lower to a higher side.
 */
export interface Partition {
  readonly time: number
  readonly kind: 'partition'
  /** Side of each node. Nodes beyond the end of the list, and services, are on side 0. */
  readonly sides: readonly number[]
  readonly oneWay: boolean
}

/** Ends the partition. */
export interface Heal {
  readonly time: number
  readonly kind: 'heal'
}

/**
 * Messages from one node to another are held until the link is unclogged, and then all delivered in order. With `drips`, bytes of a
 * large frame still arrive, so the overlay does not declare the sender dead.
 */
export interface Clog {
  readonly time: number
  readonly kind: 'clog' | 'unclog'
  readonly from: number
  readonly to: number
  readonly drips?: boolean
}

/** The learner of a node hangs: the node leaves the overlay, and returns afterwards. */
export interface Hang {
  readonly time: number
  readonly kind: 'hang' | 'unhang'
  readonly node: number
}

/**
 * Changes ADMB's graph beside the topology. `link` adds a link, even if it closes a cycle; `unlink` closes the session at one
 * end only.
 */
export interface Rewiring {
  readonly time: number
  readonly kind: 'link' | 'unlink'
  readonly from: number
  readonly to: number
}

/** Times in virtual milliseconds; nodes are numbered from 0. */
export type Fault = Crash | Restart | Pause | Membership | Partition | Heal | Clog | Hang | Rewiring

/** The keys `faults.*` of a scenario. */
const share = z.number().min(0).max(1).default(0)
const duration = (virtualMs: number) => z.number().positive().default(virtualMs)

const PARTITION_MODES = ['random', 'uniform', 'isolate', 'split'] as const

/** Shares of time are averages; lengths are in virtual milliseconds. */
export const faultKeys = z.strictObject({
  /** Share of time that each node is down. */
  crashShare: share,
  /** Mean downtime after a crash. */
  downtime: duration(50),
  /** Share of crashes that lose the disk. */
  diskLossShare: share,
  /** Share of crashes that do not close sessions: the machine is down, not only the process. */
  silentShare: share,
  /** Share of time that each node's process is paused, and the mean length of a pause. */
  pauseShare: share,
  pauseTime: duration(50),
  /** Share of time that each node has left, and the mean time until it joins again. */
  awayShare: share,
  awayTime: duration(200),
  /** Share of time that the network is partitioned in two. */
  partitionShare: share,
  /** Mean length of a partition. */
  partitionTime: duration(200),
  /** Minimum length of a partition; the rest is exponential. @default all partitions have the mean length */
  partitionMin: z.number().min(0).optional(),
  /**
   * Sides of a partition. `random`: each node at random. `uniform`: a uniformly distributed number of nodes on one side.
   * `isolate`: a single node on one side. `split`: the nodes below an edge of the tree.
   */
  partitionMode: z.enum(PARTITION_MODES).default('random'),
  /** Share of partitions that block one direction only. */
  oneWayShare: share,
  /** Share of time that each direction of a link is clogged, and the mean length of a clog. */
  clogShare: share,
  clogTime: duration(50)
})

/** The state of each node, changed by faults. A fault that does not apply to the node's state has no effect. */
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

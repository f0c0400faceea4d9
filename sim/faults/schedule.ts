/**
 * Fault schedules as plain data, so that all algorithms are run under the same faults, and a schedule can be printed, stored as
 * JSON, replayed and shrunk. Any list of faults is a valid schedule: a fault that does not apply (such as the restart of a
 * node that is up) has no effect.
 */

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

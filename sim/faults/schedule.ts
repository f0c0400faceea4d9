/**
 * What goes wrong in a run and when, as plain data: so every algorithm meets the same faults, and a schedule can be
 * printed, stored as JSON, replayed and shortened. Any list of faults is a schedule: one that does not apply (the restart
 * of a node that is up) does nothing, so whatever is left out, the rest still runs.
 */

/**
 * The process ends at once: memory is lost, and what was on its way to the node. Its machine then closes the sessions, unless
 * it is gone as well: of a silent crash the neighbours learn by silence.
 */
export interface Crash {
  readonly time: number
  readonly kind: 'crash'
  readonly node: number
  readonly silent?: boolean
}

/** A crashed node comes back: as a new incarnation, or, its disk and so its key lost, under a new identity. */
export interface Restart {
  readonly time: number
  readonly kind: 'restart'
  readonly node: number
  readonly disk: 'kept' | 'lost'
}

/** A stopped process: no inputs, no ticks; what arrives waits and is handled when it resumes. */
export interface Pause {
  readonly time: number
  readonly kind: 'pause' | 'resume'
  readonly node: number
}

/** A node leaves with a goodbye, or joins under a new identity. One whose first fault is `join` is absent until then. */
export interface Membership {
  readonly time: number
  readonly kind: 'join' | 'leave'
  readonly node: number
}

/**
 * Only nodes of the same side hear one another, in place of what an earlier partition said. One-way: what a lower side sends
 * does not reach a higher one, but the other way it does.
 */
export interface Partition {
  readonly time: number
  readonly kind: 'partition'
  /** Of each node; nodes beyond its end, and services beside the nodes, are on side 0. */
  readonly sides: readonly number[]
  readonly oneWay: boolean
}

/** Ends the partition. */
export interface Heal {
  readonly time: number
  readonly kind: 'heal'
}

/** Messages from one node to another wait until the link is unclogged; then all arrive at once, in order. */
export interface Clog {
  readonly time: number
  readonly kind: 'clog' | 'unclog'
  readonly from: number
  readonly to: number
}

/**
 * Rewiring of ADMB's graph, on top of what the topology gives: a link comes, cycles or not, or one end loses its session while
 * the other still holds it.
 */
export interface Rewiring {
  readonly time: number
  readonly kind: 'link' | 'unlink'
  readonly from: number
  readonly to: number
}

/** Times in virtual milliseconds; nodes by number from 0. */
export type Fault = Crash | Restart | Pause | Membership | Partition | Heal | Clog | Rewiring

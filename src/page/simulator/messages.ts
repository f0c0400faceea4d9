/** Messages between the simulator's page and its worker. */
import type { RepairName } from '../../../sim/fuzz/repairs.js'
import type { RunResult } from '../../../sim/result.js'

/** What the worker is asked for. It does one thing; to stop it, the page terminates the worker. */
export type Request =
  | { readonly kind: 'run'; readonly values: Readonly<Record<string, unknown>>; readonly source: string }
  | { readonly kind: 'search'; readonly repair: RepairName; readonly seed: number }

/** The network of a run. */
export interface NetworkShape {
  readonly nodes: number
  /** Edges of the tree, as pairs of nodes; undefined if nodes build the tree themselves. */
  readonly tree: readonly number[] | undefined
}

/** A predictor that a node holds. Number 0 is the starting one. */
export interface PredictorEntry {
  readonly updates: number
  /** Number of the predictor that it was made from; undefined for the starting one, and if it is unknown. */
  readonly parent: number | undefined
  /** The node that made it. */
  readonly origin: string
}

/** The network at one time. */
export interface Frame {
  /** Virtual milliseconds. */
  readonly time: number
  /** Inputs of all nodes so far. */
  readonly inputs: number
  /** Loss of all predictions so far above that of the best predictor, in nats or squared-error units. */
  readonly regret: number
  /** Number of each node's predictor, or AWAY. */
  readonly held: Int32Array
  /** Edges that work, as pairs of nodes. */
  readonly edges: readonly number[]
  /** What has happened since the previous frame. */
  readonly events: readonly string[]
}

/** Instead of a predictor: the node is down, paused or absent. */
export const AWAY = -1

/** Inputs of all nodes, and regret. */
export type RegretPoint = readonly [inputs: number, regret: number]

/** A trial that violates a property. */
export interface FoundViolation {
  readonly nodes: number
  readonly inputs: number
  readonly faults: number
  /** `property: detail` */
  readonly violation: string
}

export type Report =
  | { readonly kind: 'serial'; readonly points: readonly RegretPoint[] }
  | { readonly kind: 'start'; readonly shape: NetworkShape }
  /** Frames, and the predictors that have been made since the last ones. */
  | { readonly kind: 'frames'; readonly frames: readonly Frame[]; readonly predictors: readonly PredictorEntry[] }
  | { readonly kind: 'result'; readonly result: RunResult }
  | { readonly kind: 'tried'; readonly runs: number }
  | { readonly kind: 'violation'; readonly found: FoundViolation }
  /** The end of a search, after the frames of the shortest trial. */
  | { readonly kind: 'searched'; readonly violation: string | undefined }
  | { readonly kind: 'failed'; readonly message: string }

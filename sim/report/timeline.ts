/**
 * The timeline of the predictors that nodes held, for the space-time views of a report. As a run can have millions of changes, two
 * windows are recorded in full and the whole run as snapshots.
 */

/** An interval in which a node did not change, in virtual ms. */
export interface Span {
  readonly node: number
  readonly from: number
  readonly until: number
  /** The predictor; undefined while the node was away. */
  readonly held: PredictorEntry | undefined
}

export interface PredictorEntry {
  /** Number of the predictor in order of creation; 0 is the starting predictor. */
  readonly id: number
  readonly updates: number
  /** The node that made it; undefined for the starting predictor. */
  readonly maker: number | undefined
}

/** A network-wide event. */
export interface Mark {
  readonly time: number
  readonly what: 'cut' | 'healed'
}

export interface Window {
  readonly kind: 'start' | 'fault'
  readonly from: number
  readonly until: number
  /** Nodes from top to bottom, grouped by the sides of a partition. */
  readonly order: readonly number[]
  readonly spans: readonly Span[]
  readonly marks: readonly Mark[]
}

export interface Timeline {
  /** The recorded nodes; evenly spaced ones if there are many. */
  readonly watched: readonly number[]
  /** Virtual ms between two snapshots. */
  readonly step: number
  /** Per snapshot, how many updates each recorded node was behind the maximum of all nodes; AWAY if it was away. */
  readonly snapshots: readonly Int32Array[]
  /** Partitions of the network. */
  readonly cuts: readonly { readonly from: number; readonly until: number }[]
  readonly windows: readonly Window[]
}

export const AWAY = -1

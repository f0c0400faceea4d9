/** A window of a run for its space-time view: which predictor each node held, from the start or from the first partition. */

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
}

/** A network-wide event. */
export interface Mark {
  readonly time: number
  readonly what: 'cut' | 'healed'
}

export interface Timeline {
  readonly from: number
  readonly until: number
  /** Nodes from top to bottom, grouped by the sides of a partition; evenly spaced ones if there are many. */
  readonly order: readonly number[]
  readonly spans: readonly Span[]
  readonly marks: readonly Mark[]
}

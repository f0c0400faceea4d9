/**
 * Who held which predictor when: what the space-time views of a report are drawn from. A run can have millions of changes,
 * so two windows of it are kept in full and the whole of it as snapshots (recorder.ts keeps them).
 */

/** A time in which a node did not change. Times in virtual ms. */
export interface Span {
  readonly node: number
  readonly from: number
  readonly until: number
  /** What it held; undefined while it was away. */
  readonly held: PredictorEntry | undefined
}

export interface PredictorEntry {
  /** Number of the predictor in the order in which predictors came up; 0 is the starting one. */
  readonly id: number
  readonly updates: number
  /** The node that made it; undefined for the starting predictor. */
  readonly maker: number | undefined
}

/** A moment that concerns the whole network. */
export interface Mark {
  readonly time: number
  readonly what: 'cut' | 'healed'
}

export interface Window {
  readonly kind: 'start' | 'fault'
  readonly from: number
  readonly until: number
  /** Nodes from top to bottom: those of one side of a cut stand together. */
  readonly order: readonly number[]
  readonly spans: readonly Span[]
  readonly marks: readonly Mark[]
}

export interface Timeline {
  /** The nodes that were watched, evenly chosen where there are many. */
  readonly watched: readonly number[]
  /** Virtual ms between two snapshots. */
  readonly step: number
  /**
   * For each snapshot, how many updates each watched node was behind the greatest number anywhere; AWAY for a node that was
   * away.
   */
  readonly snapshots: readonly Int32Array[]
  /** When the network was cut. */
  readonly cuts: readonly { readonly from: number; readonly until: number }[]
  readonly windows: readonly Window[]
}

export const AWAY = -1

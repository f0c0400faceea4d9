/** The result of a run: the output of `admb sim run --json`, and the data of reports. */

/** A property that does not hold. It ends the run at the event that violated it. */
export class Violation extends Error {
  override readonly name = 'Violation'
  /** The property, as in the table of docs/reference/simulator.md. */
  readonly property: string

  /** @param detail one line: which node, and what it did */
  constructor(property: string, detail: string) {
    super(`${property}: ${detail}`)
    this.property = property
  }
}

/** A point of the learning curve of a run. */
export interface CurvePoint {
  /** Inputs served so far, by all nodes. */
  readonly inputs: number
  /** When the last of them was served. */
  readonly virtualMs: number
  readonly regret: number
  readonly newestRegret: number
  readonly averageLoss: number
  readonly updates: number
  readonly bytes: number
}

/** What a bound consists of: `smoothness` + `deviation`. */
export interface BoundTerms {
  /** Theorem of "Robust Distributed Online Prediction". */
  readonly theorem: 1 | 3
  /** ½‖w*‖² = D². */
  readonly D: number
  /** Smoothness of the expected loss. */
  readonly L: number
  /** σ: bound of the standard deviation of a gradient. */
  readonly sigma: number
  /** Gradients per update. */
  readonly b: number
  /** ν: inputs per update. */
  readonly nu: number
  /** The part with 2D²L. */
  readonly smoothness: number
  /** The part with 2Dσ√(m/b). */
  readonly deviation: number
  /** The number of inputs, in whole updates, from which the bound of a run without faults is below log 2 per input. */
  readonly informativeFrom: number
}

/** Losses and regret of the served predictions, in nats or in units of squared error. */
export interface RegretAccounts {
  /** Loss of all served predictions minus that of the comparator on the same inputs. */
  readonly regret: number
  /** The same if the nodes had predicted with their newest predictors, without an average. */
  readonly newestRegret: number
  readonly averageLoss: number
  readonly comparatorLoss: number
  /** `known`: the optimum of the stream's distribution. `hindsight`: the best fixed predictor of the served inputs. */
  readonly comparator: 'known' | 'hindsight'
  /** Norm of the gradient of the average loss at a comparator found in hindsight. */
  readonly gradientNorm?: number
  /** The theorem's bound on the expected regret, if there is one. For ADMB it bounds `goodRegret`. */
  readonly bound?: number
  /** The constants of the bound, and the size of its terms. */
  readonly boundTerms?: BoundTerms
  /** Whether the regret of this run is within the bound. */
  readonly boundHolds?: boolean
  /**
   * Whether the bound is at least log 2 for each input that it covers. It then says nothing: the predictor 0, whose loss is
   * log 2 for each input, is within it as well.
   */
  readonly boundIsVacuous?: boolean
  /** Inputs served in good periods: all running nodes are linked and the last fault is long past (`regret/periods.ts`). */
  readonly goodInputs: number
  /** Regret of these inputs. */
  readonly goodRegret: number
  /** Regret of the inputs that each node served. `nodes` lists all nodes if there are at most 64. */
  readonly regretByNode: {
    readonly min: number
    readonly median: number
    readonly max: number
    readonly nodes?: readonly number[]
  }
  /** Points at numbers of inputs that grow by a factor of √2. */
  readonly curve: readonly CurvePoint[]
}

/** Traffic of the statuses since the warm-up. */
export interface StatusTraffic {
  readonly messages: number
  readonly bytes: number
  /** Bytes that a node received per second. */
  readonly bytesPerSecond: { readonly mean: number; readonly max: number }
  /** Smallest number of running nodes in the totals of a node with an open page, and number of rows; 0 without such nodes. */
  readonly peers: number
  readonly rows: number
}

/** Results of a simulated run, with losses in nats or squared-error units. */
export interface RunResult extends RegretAccounts {
  readonly algorithm: string
  readonly nodes: number
  readonly inputs: number
  readonly batch: number
  readonly seed: number
  /** Inputs served until every node had held an updated predictor. Only for ADMB; undefined if that was not reached. */
  readonly startInputs?: number
  /** Updates of the best predictor. */
  readonly updates: number
  /** Predictors adopted from another node. */
  readonly adoptions: number
  /** Gradients on the lineage of the best predictor, as the headers of its updates count them. For isolated nodes: on all lineages. */
  readonly used: number
  /** Gradients that nodes hold for later updates. */
  readonly held: number
  /** Gradients that no update has used or will use. */
  readonly discarded: number
  readonly messages: number
  readonly bytes: number
  /** Traffic of statuses among these, after the warm-up; undefined without statuses. */
  readonly statuses?: StatusTraffic
  readonly violations: readonly string[]
  readonly events: number
  /** Hash of all events: equal for the same scenario and seed on any machine. */
  readonly traceHash: string
  readonly virtualMs: number
  /** Wall-clock time. */
  readonly seconds: number
}

/** What a run came to: what `admb sim run --json` prints, and what reports are made of. */

export interface CurvePoint {
  /** Inputs served so far, by all nodes. */
  readonly inputs: number
  readonly regret: number
  readonly averageLoss: number
  readonly updates: number
  readonly bytes: number
}

/** What the predictions of a run lost. Losses in nats or squared-error units. */
export interface RegretAccounts {
  /** Loss of all served predictions less that of the comparator on the same inputs. */
  readonly regret: number
  readonly averageLoss: number
  readonly comparatorLoss: number
  /** The best predictor: that of the stream's distribution, or the one found in hindsight for the inputs served. */
  readonly comparator: 'known' | 'hindsight'
  /** Length of the average loss's gradient at the comparator found in hindsight. */
  readonly gradientNorm?: number
  /** The theorem's bound on the expected regret, where there is one; for ADMB, on that of the good periods' inputs. */
  readonly bound?: number
  /** Whether the regret of this run is within it. */
  readonly boundHolds?: boolean
  /** Inputs served in good periods: all running nodes linked, and the last fault long enough past (`good-periods.ts`). */
  readonly goodInputs: number
  readonly goodRegret: number
  /** Regret of the inputs that each node served; every node's own only where there are few. */
  readonly regretByNode: {
    readonly min: number
    readonly median: number
    readonly max: number
    readonly nodes?: readonly number[]
  }
  /** At numbers of inputs that grow by √2. */
  readonly curve: readonly CurvePoint[]
}

/** What a run came to; see the scenario for the rest of its keys. */
export interface RunResult extends RegretAccounts {
  readonly algorithm: string
  readonly nodes: number
  readonly inputs: number
  readonly batch: number
  readonly seed: number
  /** Inputs served until every node had held a predictor beyond its start; for ADMB, where that came about. */
  readonly startInputs?: number
  readonly updates: number
  readonly adoptions: number
  readonly discarded: number
  readonly messages: number
  readonly bytes: number
  readonly violations: readonly string[]
  readonly events: number
  readonly traceHash: string
  readonly virtualMs: number
  readonly seconds: number
}

/** What a run came to: what `admb sim run --json` prints, and what reports are made of. */

export interface CurvePoint {
  /** Inputs served so far, by all nodes. */
  readonly inputs: number
  readonly regret: number
  readonly averageLoss: number
  readonly updates: number
  readonly bytes: number
}

/** What a run came to. Losses in nats or squared-error units; see the scenario for the rest of its keys. */
export interface RunResult {
  readonly algorithm: string
  readonly nodes: number
  readonly inputs: number
  readonly batch: number
  readonly seed: number
  readonly regret: number
  readonly averageLoss: number
  readonly comparatorLoss: number
  /** The theorem's bound on the expected regret, where there is one for the algorithm and nothing fails. */
  readonly bound?: number
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
  /** At numbers of inputs that grow by √2. */
  readonly curve: readonly CurvePoint[]
}

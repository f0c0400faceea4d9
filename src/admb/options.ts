/** What an ADMB node is told at its start, with defaults and units, and what it tells its driver. */
import type { Layout } from '../learner/types.js'
import type { Allocate } from './bytes.js'
import type { PredictorLookup } from './current-predictor.js'
import type { Batch, Header, Predictor, Recipe } from './predictor.js'
import type { Precedence } from './predictor-id.js'

export interface AdmbOptions extends Recipe {
  /** This node's index among all nodes; lower wins between predictors with equally many updates. */
  readonly self: string
  /** Number of this run, stored durably before the first frame leaves: 1 at first, then one more each start. */
  readonly incarnation: number
  readonly layout: Layout
  /** The predictor to start from: `startingPredictor(…)`, or what an earlier run saved. */
  readonly initial: Predictor
  /** b: gradients a batch, ≥ 1. */
  readonly batch: number
  /** S: periods for which gradients that no batch used are kept; 0 is the published algorithm. Default 0. */
  readonly carry?: number
  /** H: how many headers of ancestors are kept and sent along, when `carry` is not 0. Default 64. */
  readonly lineage?: number
  /** Default 'origin'. 'sender' is the paper's letter, for experiments; it needs carry 0. */
  readonly precedence?: Precedence
  /** Whole predictors up to that many bytes are sent unasked to a neighbour that lacks them. Default 65536. */
  readonly pushBytes?: number
  /** A frame's vectors go in parts of about that many bytes if they take more. Default: they always go in the frame. */
  readonly fragmentBytes?: number
  /** Predictors that are in this memory already and need not be made again. Default none. */
  readonly known?: PredictorLookup
  /** Where finished frames are put. Default a buffer of its own for each, which may be transferred. */
  readonly allocate?: Allocate
}

/** What happened, for the driver to act on. */
export type Effect =
  | { readonly kind: 'updated'; readonly predictor: Predictor; readonly header: Header; readonly batch: Batch }
  | { readonly kind: 'adopted'; readonly predictor: Predictor; readonly from: string }
  | { readonly kind: 'refused'; readonly edge: number; readonly reason: string }

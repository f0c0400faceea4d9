/** Metrics of a learner while it learns, and of predictors. */

export { Baseline, type BaselineFigures, baselineFor, hasPlainLoss, uselessLoss } from './baseline.js'
export {
  commitClass,
  commitRows,
  commitSums,
  type Figures,
  OUTCOME_ROWS,
  type Outcome,
  type OutcomeKind,
  type Outcomes,
  type ScoreLoss,
  widthOf
} from './confusion.js'
export { Evaluation, type EvaluationFigures } from './evaluation.js'
export { type Metrics, ProgressiveMetrics, type WindowFigures } from './progressive.js'
export {
  type TimeFigures,
  type TimeWindowFigures,
  TimeWindows
} from './time-windows.js'

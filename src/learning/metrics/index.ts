/** Metrics of a learner while it learns, and of predictors. */

export { Baseline, baselineFor, hasPlainLoss, uselessLoss } from './baseline.js'
export {
  commitClass,
  commitRows,
  commitSums,
  OUTCOME_ROWS,
  type Outcome,
  type OutcomeKind,
  type Outcomes,
  type ScoreLoss,
  widthOf
} from './confusion.js'
export { Evaluation, type EvaluationFigures } from './evaluation.js'
export {
  type BaselineFigures,
  baselineSchema,
  type Figures,
  figuresSchema,
  type Metrics,
  metricsSchema,
  type TimeFigures,
  type TimeWindowFigures,
  type WindowFigures
} from './figures.js'
export { ProgressiveMetrics } from './progressive.js'
export { TimeWindows } from './time-windows.js'

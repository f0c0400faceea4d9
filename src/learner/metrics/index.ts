/** Progressive metrics of a learner. */
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
} from './figures.js'
export { type Metrics, ProgressiveMetrics, WINDOWS, type WindowFigures } from './progressive.js'
export { type MinuteFigures, TimedSums } from './timed-sums.js'

/** The module's public API: models, rules, averages, digests, and training in one process. Terms: docs/glossary.md. */

export { DivergenceError } from '../base/errors.js'
export { AdaptiveBatch, type BatchRange } from './adaptive-batch.js'
export {
  type AveragingName,
  type AveragingSpec,
  averages,
  averagingFor,
  averagingNames,
  averagingType,
  copyingLast,
  createAveraging,
  defaultAveraging,
  lazyAveraging,
  mixInto,
  type WeightedAveraging
} from './averaging.js'
export {
  BatchEngine,
  type Engine,
  newProgress,
  type PredictWith,
  type Progress,
  type Rest,
  type Trained
} from './batch-engine.js'
export {
  addedClasses,
  extendsTable,
  fitsTable,
  growingRule,
  hasFreeSlot,
  propose
} from './class-table.js'
export {
  addLoss,
  addRule,
  type CustomLoss,
  type CustomName,
  type CustomRule,
  type CustomRuleFactory,
  type CustomRuleSpec,
  customLoss,
  isCustomName
} from './custom.js'
export { digest, treeDigest } from './digest.js'
export {
  type Drift,
  type DriftAlarm,
  DriftLog,
  type DriftTest,
  describeAlarm,
  driftTests
} from './drift.js'
export { type Active, checkFeatures, conflictOf, featuresPage } from './features.js'
export { type HindsightOptimum, hindsightOptimum } from './hindsight.js'
export { featuresOf } from './hindsight-problem.js'
export { InfluenceBound } from './influence.js'
export { latticeRecipe, roundedRecipe, withEstimates } from './lattice.js'
export { createCustomLearner, createLearner } from './linear.js'
export { averagingRule, checkLocalSteps, LocalSteps, type LocalStepsOptions } from './local-steps.js'
export { LossGate } from './loss-gate.js'
export type { TargetScale } from './losses.js'
export { pearson, spearman } from './metrics/evaluation.js'
export {
  type Baseline,
  type BaselineFigures,
  baselineFor,
  type Clock,
  checkWindows,
  commitRows,
  commitSums,
  Evaluation,
  type EvaluationFigures,
  type Figures,
  hasPlainLoss,
  type Metrics,
  OUTCOME_ROWS,
  type Outcome,
  type OutcomeKind,
  type Outcomes,
  ProgressiveMetrics,
  type ScoreLoss,
  type TimeFigures,
  type TimeWindowFigures,
  type TimeWindows,
  uselessLoss,
  type WindowFigures,
  widthOf
} from './metrics/index.js'
export { checkLabel, gradientWeight, isClassifier, type ModelName, type ModelOptions, modelNames } from './model.js'
export * as optionTypes from './options.js'
export { checkOptions, ExampleError, OptionError, type OptionTypes } from './options.js'
export { addNoise, Privacy, type PrivacyOptions } from './privacy.js'
export {
  type BitsOption,
  createRule,
  type DelayOption,
  defaultNetworkRule,
  defaultRule,
  isBlockwise,
  isDual,
  type RuleName,
  type RuleSpec,
  ruleFor,
  ruleNames,
  rules,
  ruleType,
  undelayed
} from './rules/index.js'
export { areFinite, KERNEL_BYTES, releaseKernelMemory, useKernelMemory, VECTOR_BYTES } from './rules/kernels.js'
export { type CustomEngine, type SerialOptions, type SerialReport, SerialTrainer } from './serial.js'
export { type BoundedTrust, boundsOf, parseTrust, type Trust } from './trust.js'
export type * from './types.js'
export { learnerAfter, rowsOf, weightOf } from './types.js'
export { stateBlockIndices, zeros } from './working-content.js'

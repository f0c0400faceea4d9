/** The module's public API: models, rules, averages, digests, and training in one process. Terms: docs/reference/glossary.md. */

export { DivergenceError } from '../base/errors.js'
export type { Squares } from '../numeric/block-kernels.js'
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
export { digest, packedDigest, treeDigest } from './digest.js'
export {
  type Drift,
  type DriftAlarm,
  DriftLog,
  type DriftTest,
  describeAlarm,
  driftSchema,
  driftTests
} from './drift.js'
export {
  BatchEngine,
  type Engine,
  newProgress,
  type PredictWith,
  type Progress,
  type Rest,
  type Trained
} from './engines/batch-engine.js'
export { type CustomEngine, type SerialOptions, type SerialReport, SerialTrainer } from './engines/serial.js'
export { stateBlockIndices, zeros } from './engines/working-content.js'
export { type Active, checkFeatures, conflictOf, featuresPage } from './features.js'
export { pearson, spearman } from './metrics/evaluation.js'
export { type HindsightOptimum, hindsightOptimum } from './metrics/hindsight.js'
export { featuresOf } from './metrics/hindsight-problem.js'
export {
  type Baseline,
  type BaselineFigures,
  baselineFor,
  baselineSchema,
  commitRows,
  commitSums,
  Evaluation,
  type EvaluationFigures,
  type Figures,
  hasPlainLoss,
  type Metrics,
  metricsSchema,
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
export { LossGate } from './metrics/loss-gate.js'
export { addedClasses, ClassTable, extendsTable, fitsTable, hasFreeSlot, propose } from './models/class-table.js'
export { createCustomLearner, createLearner, linearLayout } from './models/linear.js'
export type { TargetScale } from './models/losses.js'
export {
  checkLabel,
  gradientWeight,
  isClassifier,
  type ModelName,
  type ModelOptions,
  modelNames
} from './models/model.js'
export * as optionTypes from './options.js'
export { checkOptions, ExampleError, OptionError, type OptionsOf } from './options.js'
export { addNoise, Privacy, type PrivacyOptions } from './privacy.js'
export { AdaptiveBatch, type BatchRange } from './rules/adaptive-batch.js'
export {
  type AveragingName,
  type AveragingSpec,
  averages,
  averagingFor,
  averagingNames,
  averagingType,
  createAveraging,
  defaultAveraging,
  lazyAveraging,
  mixInto,
  type WeightedAveraging
} from './rules/averaging.js'
export { type CarriedBlock, carry, carryingLayout, carryingRecipe, placeOf } from './rules/carried.js'
export {
  type BitsOption,
  createRule,
  defaultNetworkRule,
  defaultRule,
  isBlockwise,
  isDual,
  isLayered,
  type LayerRulesSpec,
  type RuleName,
  type RuleSpec,
  ruleFor,
  ruleForRows,
  ruleNames,
  ruleOfLayer,
  rules,
  ruleType,
  type SingleRuleSpec
} from './rules/index.js'
export { InfluenceBound } from './rules/influence.js'
export { areFinite, KERNEL_BYTES, releaseKernelMemory, useKernelMemory, VECTOR_BYTES } from './rules/kernels.js'
export { latticeRecipe, roundedRecipe, withEstimates } from './rules/lattice.js'
export { type LayerRule, layerEntries } from './rules/layers.js'
export { averagingRule, checkLocalSteps, LocalSteps, type LocalStepsOptions } from './rules/local-steps.js'
export { checkSumBytes, SparseSums, sparseParts } from './rules/sparse-sums.js'
export { type BoundedTrust, boundsOf, parseTrust, type Trust } from './trust.js'
export type * from './types.js'
export { learnerAfter, markOf, rowsOf, weightOf } from './types.js'

/** The room's public face: models, rules, averages, digests, and training in one process. */

export {
  type AveragingName,
  type AveragingSpec,
  averagingNames,
  createAveraging,
  defaultAveraging,
  mixInto,
  type WeightedAveraging
} from './averaging.js'
export { BatchEngine } from './batch-engine.js'
export { zeros } from './blocks.js'
export { digest } from './digest.js'
export { DivergenceError, ExampleError, OptionError } from './errors.js'
export { learnerAfter } from './growing.js'
export { type HindsightOptimum, type HindsightOptions, hindsightOptimum } from './hindsight.js'
export { featuresOf } from './hindsight-problem.js'
export { createLearner } from './linear.js'
export { checkLabel, type ModelName, type ModelOptions, modelNames } from './model.js'
export {
  addLoss,
  addRule,
  isOwnName,
  type OwnLoss,
  type OwnName,
  type OwnRule,
  type OwnRuleFactory,
  type OwnRuleSpec,
  ownLoss
} from './own.js'
export { createOwnLearner } from './own-loss.js'
export { isBlockwise, statePlaces } from './rules/blockwise.js'
export {
  createRule,
  defaultNetworkRule,
  defaultRule,
  type RuleName,
  type RuleSpec,
  ruleFor,
  ruleNames
} from './rules/index.js'
export { type SerialOptions, type SerialReport, SerialTrainer } from './serial.js'
export { type Engine, newTally, type PredictWith, type Rest, type Trained } from './trainer.js'
export type * from './types.js'

/**
 * The library: the algorithm as a state machine for one's own transport, learners and rules, streams, and a whole peer.
 */
export * from './admb/index.js'
export {
  type Averaging,
  type AveragingSpec,
  type Blocks,
  createAveraging,
  createLearner,
  createRule,
  type Digest,
  digest,
  type Examples,
  type Layout,
  type Learner,
  type ModelName,
  type ModelOptions,
  type Prediction,
  type RuleSpec,
  type RuleState,
  ruleFor,
  type Score,
  SerialTrainer,
  type UpdateRule
} from './learner/index.js'
export { type LearningSpec, Peer, type PeerOptions, type PeerStatus } from './peer/index.js'
export { createParser, type ExampleStream, openStream, type StreamOptions } from './streams/index.js'

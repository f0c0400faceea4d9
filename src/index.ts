/**
 * The library: a peer in a program of one's own, learning in one process, the simulator; what plug-ins are made of; and the
 * parts below, for one's own transport: the algorithm as a state machine, learners, rules, streams.
 */
export * from './admb/index.js'
export type { NetworkSpec } from './l2l/description.js'
export type { Execution, OwnLayer, OwnLayerFactory, OwnLayerPlace } from './l2l/index.js'
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
  type OwnLoss,
  type OwnName,
  type OwnRule,
  type OwnRuleFactory,
  type OwnRuleSpec,
  type Prediction,
  type PredictWith,
  type RuleSpec,
  type RuleState,
  ruleFor,
  type Score,
  type SerialReport,
  SerialTrainer,
  type UpdateRule
} from './learner/index.js'
export {
  type Answer,
  type CreatePeerOptions,
  createPeer,
  type LearningPeer,
  type PeerEvents,
  type PeerListener
} from './library/create-peer.js'
export type { Features, Label } from './library/inputs.js'
export { type ScenarioValues, simulate } from './library/simulate.js'
export type { NetworkModel, TaskOptions } from './library/task.js'
export { type TrainedModel, type TrainOptions, train } from './library/train.js'
export {
  type LearningSpec,
  type NeighbourChange,
  Peer,
  type PeerOptions,
  type PeerStatus,
  type Plugin,
  PluginError,
  RequestError,
  UnavailableError
} from './peer/index.js'
export type { HttpOptions } from './server/index.js'
export {
  createParser,
  type ExampleStream,
  type OwnFormat,
  type OwnInput,
  type OwnReader,
  type OwnReaderFactory,
  openStream,
  type StreamOptions
} from './streams/index.js'

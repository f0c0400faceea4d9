/**
 * The library: peers, training and simulations in a program, the types of plug-ins, and the parts below: the algorithm as a state
 * machine, learners, rules, streams.
 * @module admb
 */

export * from './admb/index.js'
export type { OnNotice } from './base/errors.js'
export {
  type ColumnKind,
  type ColumnRole,
  type ColumnSchema,
  type CustomFormat,
  type CustomInput,
  type CustomReader,
  type CustomReaderFactory,
  createParser,
  type DateOrder,
  type Delimiter,
  type ExampleStream,
  type Format,
  type From,
  type Interactions,
  type LabelSchema,
  type Malformed,
  type Mark,
  openStream,
  type Parser,
  type ParserOptions,
  type ReadContext,
  type Rows,
  type RunningMoments,
  type SavedMoments,
  type Scaling,
  type Schema,
  type Shard,
  type StreamOptions,
  type StreamPosition,
  type TextFormat,
  type TokenRows
} from './data/index.js'
export type { CustomLayer, CustomLayerContext, CustomLayerFactory, Execution, GradientCode } from './l2l/index.js'
export {
  type AdaptiveBatch,
  type Averaging,
  type AveragingName,
  type AveragingSpec,
  type BaselineFigures,
  type BatchRange,
  type BatchRule,
  type BitsOption,
  type BlockLayout,
  type Blocks,
  type BoundedTrust,
  type CarriedBlock,
  type CustomEngine,
  type CustomLoss,
  type CustomName,
  type CustomRule,
  type CustomRuleFactory,
  type CustomRuleSpec,
  createAveraging,
  createLearner,
  createRule,
  type Digest,
  type Drift,
  type DriftAlarm,
  digest,
  type Engine,
  type Examples,
  type Figures,
  type Grid,
  type IncrementalDigest,
  type InfluenceRule,
  type Labels,
  type LayerRule,
  type LayerRulesSpec,
  type Layout,
  type Learner,
  type Metrics,
  type ModelName,
  type ModelOptions,
  type Outcome,
  type OutcomeKind,
  type Outcomes,
  type Prediction,
  type PredictWith,
  type PrivacyOptions,
  type Progress,
  type ProgressiveMetrics,
  type Rest,
  type RoundedBlocks,
  type RuleName,
  type RuleSpec,
  type RuleState,
  ruleFor,
  type Score,
  type ScoreLoss,
  type SectionStep,
  type SerialOptions,
  type SerialReport,
  SerialTrainer,
  type SingleRuleSpec,
  type Squares,
  type SumBudget,
  type TargetScale,
  type TimeFigures,
  type TimeWindowFigures,
  type TimeWindows,
  type Trained,
  type Trust,
  type Unsent,
  type UpdateRule,
  type WeightedAveraging,
  type WindowFigures
} from './learning/index.js'
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
export { EndedEarlyError, type TrainedModel, type TrainOptions, type TrainReport, train } from './library/train.js'
export type { IdentityKey, LogLevel } from './network/types.js'
export type { CustomLayerSpec } from './nn/layers/custom-kinds.js'
export type { NetworkSpec, Target, TextSpec, TuningSpec } from './nn/spec/network-spec.js'
export type { Sample, TokenSample, WeightSpec } from './nn/types.js'
export type { CompactBlock, Elements, MarkElements, SparseBlock, Sum, SumBlock } from './numeric/sums.js'
export type { Support } from './numeric/support.js'
export {
  type AcceptUpgrade,
  type CustomLossSpec,
  type Download,
  type FailedInput,
  type FeatureSpec,
  type InputAnswer,
  type InputRequest,
  type JoinOffer,
  type LearningSpec,
  type LinearSpec,
  type Log,
  type NeighbourChange,
  type NetworkLearningSpec,
  type OwnGradients,
  PartlyLearnedError,
  Peer,
  type PeerMetrics,
  type PeerOptions,
  type PeerPredictWith,
  type PeerProgram,
  type PeerStatus,
  type Plugin,
  PluginError,
  type PrivacyStatus,
  type ProgramModel,
  type ProgramSpec,
  RequestError,
  type SentTraffic,
  type Traffic,
  UnavailableError,
  type WebSocketUpgrades
} from './peer/index.js'
export { type Join, ProgramError } from './program/messages.js'
export { type ProgramHandler, ProgramServer } from './program/program-server.js'
export type { HttpOptions, TlsFiles } from './server/index.js'
export type { BatchOption, ClassWeights } from './task/option-values.js'
export type { NetworkModel, TaskOptions } from './task/options.js'
export type { FoundPeer, NetworkTotals, PeerRow, Subtree } from './view/index.js'

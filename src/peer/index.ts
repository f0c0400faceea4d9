/** The module's public API: one peer, for the commands and the HTTP server. Terms: docs/reference/glossary.md. */

export type { Figures } from '../learning/index.js'
export type { Log } from '../network/types.js'
export { type AcceptUpgrade, WebSocketUpgrades } from '../network/types.js'
export { learningParts, scoringExecution } from '../task/learning-parts.js'
export {
  type CustomLossSpec,
  type FeatureSpec,
  type LearningSpec,
  type LinearSpec,
  type NetworkLearningSpec,
  PROTOCOL_VERSION,
  type ProgramModel,
  type ProgramSpec
} from '../task/learning-spec.js'
export { loadPlugins, type Plugin, PluginError } from '../task/plugins.js'
export { learningSpecFields, parseSpec, specText } from '../task/spec-text.js'
export { windowName } from '../view/index.js'
export { answerSchema, type FailedInput, type InputAnswer, type Prediction } from './answers.js'
export type { Download } from './downloads.js'
export { OtherNetworkError, PartlyLearnedError, RequestError, UnavailableError } from './errors.js'
export type { JoinOffer } from './join-offer.js'
export { type NeighbourChange, type PeerOptions, peerTypes } from './options.js'
export { Peer } from './peer.js'
export type { PeerProgram } from './peer-program.js'
export { checkMemory } from './program-memory.js'
export { forgetModel, type Surroundings, settleProgram, settleTask } from './settle.js'
export {
  type OwnGradients,
  type PeerMetrics,
  type PeerStatus,
  type PrivacyStatus,
  peerMetrics,
  predictorId,
  type SentTraffic,
  sentTraffic,
  statusSchema,
  type Traffic,
  traffic
} from './status.js'
export type {
  InputRequest,
  PeerPredictWith
} from './thread-messages.js'

/** One peer: what the commands and the server use of it. */
export type { Log } from '../network/index.js'
export {
  agreementFields,
  type FeatureSpec,
  type LearningParts,
  type LearningSpec,
  type LinearSpec,
  learningParts,
  linearParts,
  type NetworkLearningSpec,
  type OwnLossSpec,
  PROTOCOL_VERSION,
  parserOptions,
  parseSpec,
  specText
} from './agreement.js'
export type { Download } from './download.js'
export { LearnerFailedError, RequestError, UnavailableError } from './learner-handle.js'
export { DEFAULT_CARRY, type NeighbourChange, type PeerOptions, type PeerStatus, type Traffic } from './options.js'
export { Peer } from './peer.js'
export { loadPlugins, type Plugin, PluginError } from './plugins.js'
export type { InputAnswer, InputRequest, PredictWith } from './thread-messages.js'

/** One peer: what the commands and the server use of it. */
export {
  agreementFields,
  type FeatureSpec,
  type LearningParts,
  type LearningSpec,
  type LinearSpec,
  learningParts,
  linearParts,
  parseSpec,
  specText
} from './agreement.js'
export { LearnerFailedError, RequestError } from './learner-handle.js'
export { DEFAULT_CARRY, type PeerOptions, type PeerStatus } from './options.js'
export { Peer } from './peer.js'
export type { InputAnswer, InputRequest, PredictWith } from './thread-messages.js'

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
  parseSpec,
  specText
} from './agreement.js'
export type { Download } from './download.js'
export { LearnerFailedError, RequestError, UnavailableError } from './learner-handle.js'
export { DEFAULT_CARRY, type PeerOptions, type PeerStatus } from './options.js'
export { Peer } from './peer.js'
export type { InputAnswer, InputRequest, PredictWith } from './thread-messages.js'

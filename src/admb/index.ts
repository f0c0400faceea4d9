/** ADMB as a pure state machine: what the peers, the simulator and the tests drive. */

export { FrameError } from './errors.js'
export { LIMITS, maximumFrameBytes, type Shapes } from './frame.js'
export { decodeHead, encodeHead, type Head } from './head.js'
export { compareNames, nameKey, type Precedence, type PredictorName, sameName } from './name.js'
export { AdmbNode } from './node.js'
export type { AdmbOptions, Effect } from './options.js'
export { isPart } from './parts.js'
export { type Batch, type Header, nextPredictor, type Predictor, type Recipe, startingPredictor } from './predictor.js'
export { Assembler, decodeSaved, encodeParts, encodeSaved, type Saved, type SavedParts } from './saved.js'

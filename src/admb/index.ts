/** ADMB as a pure state machine: what the peers, the simulator and the tests drive. */
export { LIMITS, maximumFrameBytes, type Shapes } from './codec.js'
export { FrameError } from './errors.js'
export { compareNames, nameKey, type Precedence, type PredictorName, sameName } from './name.js'
export { AdmbNode, type AdmbOptions, type Effect } from './node.js'
export { type Batch, type Header, nextPredictor, type Predictor, type Recipe, startingPredictor } from './predictor.js'
export { decodeSaved, encodeSaved, type Saved } from './saved.js'

/** ADMB as a pure state machine, used by peers, the simulator and tests. */

export { FrameError } from './bytes.js'
export { isFragment } from './fragments.js'
export { FRAME_LIMITS as LIMITS, maximumFrameBytes, type Shapes } from './frame.js'
export { decodeHead, encodeHead, type Head } from './head.js'
export { AdmbNode } from './node.js'
export type { AdmbOptions, Effect } from './options.js'
export { type Batch, type Header, nextPredictor, type Predictor, type Recipe, startingPredictor } from './predictor.js'
export {
  compareIds,
  formatId,
  type Precedence,
  type PredictorId,
  sameId
} from './predictor-id.js'
export {
  decodeSaved,
  encodeSaved,
  encodeSavedBlocks as encodeParts,
  PredictorAssembler as Assembler,
  type Saved,
  type SavedBlocks as SavedParts
} from './saved.js'

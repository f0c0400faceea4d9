/**
 * What can be wrong with bytes that claim to be a frame, as one error type: whoever receives it ends the edge session and
 * names the sender.
 */
import { CodedError } from '../base/errors.js'

/** A frame that violates the format, a limit or a rule that any honest sender keeps. Nothing of it has touched the state. */
export class FrameError extends CodedError {
  static override readonly code = 'ERR_BAD_FRAME'
}

/**
 * The ways in which the overlay can be misused, as named errors. Everything else that goes wrong (dead peers, lying
 * peers, lost sessions) is part of the protocol and never throws.
 */
import { CodedError } from '../base/errors.js'

/** A frame or beacon from outside is not a well-formed overlay message: end the session and `penalise` the sender. */
export class OverlayMessageError extends CodedError {
  static override readonly code = 'ERR_OVERLAY_MESSAGE'
}

/** An option of `OverlayNode` is out of range; the message says which and what is allowed. */
export class OverlayOptionError extends CodedError {
  static override readonly code = 'ERR_OVERLAY_OPTION'
}

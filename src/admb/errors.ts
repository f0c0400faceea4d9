/**
 * What can be wrong with bytes that claim to be a frame, as one error type: whoever receives it ends the edge session and
 * names the sender.
 */

/** A frame that violates the format, a limit or a rule that any honest sender keeps. Nothing of it has touched the state. */
export class FrameError extends Error {
  static readonly code = 'ERR_BAD_FRAME'
  readonly code = FrameError.code
  override readonly name = 'FrameError'
}

/** The update rule left the range of float32: going on would poison every peer. */
export class DivergedError extends Error {
  static readonly code = 'ERR_DIVERGED'
  readonly code = DivergedError.code
  override readonly name = 'DivergedError'
  constructor(updates: number) {
    super(
      `update ${updates} gives numbers that are not finite: scale the features, or use a smaller step (--rule NAME,step=…)`
    )
  }
}

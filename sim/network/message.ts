/** What travels between nodes. */

export interface Message {
  readonly to: number
  readonly from: number
  readonly content: unknown
  /** Whether the overlay below the algorithm is to have it. */
  readonly isOverlay: boolean
  /** Life of the receiver for which it was sent: a restarted node does not get what was on its way to the old one. */
  readonly life: number
  /** The direction of a session on which it travels; without one it may be lost, doubled or overtaken. */
  readonly lane: Lane | undefined
}

/** One direction of a session: everything sent on it arrives, in order, unless the session ends before. */
export interface Lane {
  /** When the last message sent on it arrives, if nothing holds it up. */
  lastArrival: number
  /** What has come as far as a partition or a clog, in order. */
  readonly held: Message[]
}

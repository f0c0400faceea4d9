/** Messages between nodes, and the session channels that carry them in order. */

export interface Message {
  readonly to: number
  readonly from: number
  readonly content: unknown
  /** Whether the overlay receives it, rather than the algorithm. */
  readonly isOverlay: boolean
  /** Lifetime of the receiver when it was sent. A restarted node does not receive messages sent to its previous lifetime. */
  readonly lifetime: number
  /** The session channel that carries it. Without one it may be lost, duplicated or overtaken. */
  readonly channel: SessionChannel | undefined
}

/** One direction of a session. Messages arrive in order and are not lost, unless the session ends first. */
export interface SessionChannel {
  /** Arrival time of the last message sent, unless it is held. */
  lastArrival: number
  /** Messages held at a partition or a clog, in order. */
  readonly held: Message[]
}

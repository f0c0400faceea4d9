/**
 * The sessions between nodes, of a fixed tree, reconnected immediately after every fault, or of the overlay; and the messages in
 * them.
 */
import type { MasterEdge } from '../../src/admb/index.js'
import type { Violation } from '../result.js'

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

/** Callbacks of an algorithm with sessions. */
export interface Connectable {
  /** A node has a session with a neighbour. @param session number of the session, the same at both ends */
  connect?(node: number, neighbour: number, session: number): void
  /** @param hasLeft whether the neighbour has left the network */
  disconnect?(node: number, neighbour: number, hasLeft?: boolean): void
  /** The neighbour of a node towards the root of its tree, or 'self'. */
  setMaster?(node: number, master: MasterEdge): void
}

/** Why a node stopped. `silent`: its machine is down and does not close sessions. */
export type StopCause = 'crash' | 'silent' | 'leave'

/** Decides which nodes are connected. */
export interface Wiring {
  /** Called at the start of the run. */
  start(): void
  /** A node has crashed or left. */
  stopped(node: number, cause: StopCause): void
  /** A node has restarted or joined. */
  started(node: number): void
  /** A node's process is stopped, and continues with its whole state. */
  paused?(node: number): void
  resumed?(node: number): void
  /** A running node leaves the overlay, and returns. */
  left?(node: number): void
  returned?(node: number): void
  /** Whether bytes, but no whole messages, arrive from `from` at `to`. */
  drip?(from: number, to: number, drips: boolean): void
  /** A node has refused a frame of a neighbour, which violates the protocol. The overlay bans it; the topology's links remain. */
  ban?(node: number, neighbour: number): void
  /** A node has a proof that the peer with this key is hostile. */
  distrust?(node: number, peer: string): void
  /** Adds a link that the topology does not have. The overlay ignores it, as it creates its own links. */
  link(from: number, to: number): void
  /** Closes the session at the end `from` only; on the overlay, the connection breaks at both ends. */
  unlink(from: number, to: number): void
  /** Restores the topology's links. Nodes that are down get theirs when they start. */
  restore(): void
  /** Neighbours of a node in the tree. */
  neighbours(node: number): Iterable<number>
  /** Sends a message of the algorithm. */
  send(from: number, to: number, content: unknown, bytes: number): void
  /** Handles a message of the overlay. */
  receive(message: Message): void
  /** Handles a timer of the overlay. */
  wake(node: number): void
  /** After the end of all faults: the property that does not hold yet. */
  checkQuiescence?(): Violation | undefined
}

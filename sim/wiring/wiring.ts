/**
 * Who is connected with whom at the moment, for algorithms with sessions between neighbours: as a fixed tree says, which an
 * oracle wires again at once after every fault, or as the overlay builds it.
 */
import type { Violation } from '../checkers/violation.js'
import type { Message } from '../network/message.js'

/** What the wiring tells the algorithm; nothing, where an algorithm knows no sessions. */
export interface Connectable {
  /** A node holds a session with a neighbour, of the same number at both ends. */
  connect?(node: number, neighbour: number, session: number): void
  disconnect?(node: number, neighbour: number): void
}

export interface Wiring {
  /** The run begins, with the nodes that are there. */
  start(): void
  /** A node crashed or left. */
  stopped(node: number, how: 'crash' | 'silent' | 'leave'): void
  /** A node is back or joined. */
  started(node: number): void
  /** A link comes that the topology does not have, or one end loses its session. The overlay makes its links itself, but loses them so. */
  link(from: number, to: number): void
  unlink(from: number, to: number): void
  /** Takes back what links came and went; nodes that are down find theirs when they start. */
  restore(): void
  /** Between whom the tree has edges. */
  neighbours(node: number): Iterable<number>
  /** Sends what an algorithm says. */
  send(from: number, to: number, content: unknown, bytes: number): void
  /** A message of the wiring's own arrived. */
  receive(message: Message): void
  /** A time has come for which the wiring asked. */
  wake(node: number): void
  /** What is not yet as it must come to be, once nothing fails any more. */
  notQuiescent?(): Violation | undefined
}

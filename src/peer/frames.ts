/** Frames on their way between the tree edges and the learner: one at a time on each edge, each way, and counted. */
import { isFragment } from '../admb/index.js'
import type { Edges } from './edges.js'
import type { LearnerHandle } from './learner-handle.js'

export class Frames {
  readonly sent = { messages: 0, bytes: 0 }
  readonly received = { messages: 0, bytes: 0 }
  readonly #learner: LearnerHandle
  /** For each edge with a frame at the learner, what lets the next one come. */
  readonly #waiting = new Map<number, () => void>()

  constructor(learner: LearnerHandle) {
    this.#learner = learner
  }

  /** A frame of the learner's, or a part that goes ahead of one; it hears when that is out of the way. */
  send(edges: Edges, edge: number, bytes: Uint8Array): void {
    this.sent.messages++
    this.sent.bytes += bytes.length
    const sent = isFragment(bytes) ? edges.sendPart(edge, bytes) : edges.send(edge, bytes)
    sent.then(
      () => this.#learner.post({ kind: 'writable', edge }),
      // The session has ended, of which the overlay tells.
      () => undefined
    )
  }

  /** What goes ahead of a neighbour's frame: the session bounds how much, so that it need not be held back. */
  takePart(edge: number, bytes: Uint8Array): void {
    this.received.messages++
    this.received.bytes += bytes.length
    this.#learner.post({ kind: 'part', edge, bytes }, [bytes.buffer as ArrayBuffer])
  }

  /** A neighbour's frame. Resolves when the learner has taken it in. */
  take(edge: number, bytes: Uint8Array): Promise<void> {
    this.received.messages++
    this.received.bytes += bytes.length
    return new Promise(resolve => {
      this.#waiting.set(edge, resolve)
      this.#learner.post({ kind: 'frame', edge, bytes }, [bytes.buffer as ArrayBuffer])
    })
  }

  /** The learner has taken a frame in, or the edge is gone. */
  consumed(edge: number): void {
    this.#waiting.get(edge)?.()
    this.#waiting.delete(edge)
  }
}

/** Transfers frames between the tree edges and the learner, one at a time per edge and direction, and counts them. */
import { FrameError, isAnnouncement, isEndNotice, isFragment, isProof, isVoucher } from '../admb/index.js'
import type { Edges } from './edges.js'
import type { JournalWriter } from './journal-writer.js'
import type { LearnerHandle } from './learner-handle.js'

export class FrameTransfer {
  readonly sent = { messages: 0, bytes: 0 }
  readonly received = { messages: 0, bytes: 0 }
  readonly #learner: LearnerHandle
  readonly #journal: JournalWriter | undefined
  /** For each edge with a frame at the learner, the callback that accepts the next frame. */
  readonly #waiting = new Map<number, () => void>()

  /** @param journal frames wait until it is durable */
  constructor(learner: LearnerHandle, journal: JournalWriter | undefined) {
    this.#learner = learner
    this.#journal = journal
  }

  /** Sends the learner's frame or fragment, and notifies the learner when the edge is writable again. */
  send(edges: Edges, edge: number, bytes: Uint8Array): void {
    this.sent.messages++
    this.sent.bytes += bytes.length
    const send = () => {
      const sent = isFragment(bytes) ? edges.sendFragment(edge, bytes) : edges.send(edge, bytes)
      sent.then(
        () => this.#learner.post({ kind: 'writable', edge }),
        // The session has ended, which the overlay reports.
        () => undefined
      )
    }
    if (this.#journal) this.#journal.whenDurable(send)
    else send()
  }

  /** Sends the learner's announcement of a predictor. */
  announce(edges: Edges, edge: number, bytes: Uint8Array): void {
    this.sent.messages++
    this.sent.bytes += bytes.length
    edges.sendAnnouncement(edge, bytes)
  }

  /** Passes on a neighbour's announcement. @throws FrameError if it is something else */
  receiveAnnouncement(edge: number, bytes: Uint8Array): void {
    const kinds = [isAnnouncement, isProof, isVoucher, isEndNotice]
    if (!kinds.some(isKind => isKind(bytes))) throw new FrameError('not an announcement')
    this.receiveFragment(edge, bytes)
  }

  /** Passes on a fragment of a neighbour's frame. Needs no back-pressure, because the session limits the size of fragments. */
  receiveFragment(edge: number, bytes: Uint8Array): void {
    this.received.messages++
    this.received.bytes += bytes.length
    this.#learner.post({ kind: 'fragment', edge, bytes }, [bytes.buffer as ArrayBuffer])
  }

  /** Passes on a neighbour's frame. Resolves when the learner has consumed it. */
  receive(edge: number, bytes: Uint8Array): Promise<void> {
    this.received.messages++
    this.received.bytes += bytes.length
    return new Promise(resolve => {
      this.#waiting.set(edge, resolve)
      this.#learner.post({ kind: 'frame', edge, bytes }, [bytes.buffer as ArrayBuffer])
    })
  }

  /** The learner has consumed a frame, or the edge is closed. */
  consumed(edge: number): void {
    this.#waiting.get(edge)?.()
    this.#waiting.delete(edge)
  }
}

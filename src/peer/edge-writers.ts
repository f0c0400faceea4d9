/**
 * The learner's view of the tree edges: which of them can take a frame now. One frame at a time is pending on each edge. The
 * fragments of a large frame follow each other immediately, up to a limit of memory.
 */
import { isFragment } from '../admb/index.js'

/** Limit of the pending fragments of one edge, above which no further ones are encoded. */
const MAX_PENDING_BYTES = 1 << 28

interface EdgeWriter {
  /** Bytes of each pending frame or fragment, the oldest first. */
  readonly pending: number[]
  /** Whether the newest of them is a fragment, so that more may follow. */
  isFragmented: boolean
}

export class EdgeWriters {
  readonly #writers = new Map<number, EdgeWriter>()
  readonly #post: (edge: number, bytes: Uint8Array) => void

  /** @param post sends a frame or fragment */
  constructor(post: (edge: number, bytes: Uint8Array) => void) {
    this.#post = post
  }

  open(edge: number): void {
    this.#writers.set(edge, { pending: [], isFragmented: false })
  }

  close(edge: number): void {
    this.#writers.delete(edge)
  }

  /**
   * The oldest pending frame has been consumed, or the oldest pending fragment has been sent.
   * @returns whether the neighbour has consumed all frames
   */
  cleared(edge: number): boolean {
    const writer = this.#writers.get(edge)
    writer?.pending.shift()
    return writer !== undefined && writer.pending.length === 0 && !writer.isFragmented
  }

  /** Whether the edge can take a frame or a fragment. */
  canSend(edge: number): boolean {
    const writer = this.#writers.get(edge)
    return writer !== undefined && canTake(writer)
  }

  send(edge: number, bytes: Uint8Array): void {
    const writer = this.#writers.get(edge)
    if (writer === undefined) return
    writer.pending.push(bytes.length)
    writer.isFragmented = isFragment(bytes)
    this.#post(edge, bytes)
  }
}

function canTake({ pending: leaving, isFragmented: isInParts }: EdgeWriter): boolean {
  if (leaving.length === 0) return true
  return isInParts && leaving.reduce((sum, bytes) => sum + bytes, 0) < MAX_PENDING_BYTES
}

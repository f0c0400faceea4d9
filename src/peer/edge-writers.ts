/**
 * The learner's ends of the tree edges: which can take a frame now. One frame at a time is on its way on each; the parts of a
 * large one follow each other at once, as far as memory allows.
 */
import { isFragment } from '../admb/index.js'

/** Bytes of parts that wait to leave one edge before no more are encoded. */
const MOST_WAITING = 1 << 28

interface EdgeWriter {
  /** Bytes of each frame or part that is on its way, the oldest first. */
  readonly leaving: number[]
  /** Whether the newest of them is a part, so that more may follow. */
  isInParts: boolean
}

export class EdgeWriters {
  readonly #writers = new Map<number, EdgeWriter>()
  readonly #post: (edge: number, bytes: Uint8Array) => void

  /** @param post hands a frame or part over to be sent */
  constructor(post: (edge: number, bytes: Uint8Array) => void) {
    this.#post = post
  }

  open(edge: number): void {
    this.#writers.set(edge, { leaving: [], isInParts: false })
  }

  close(edge: number): void {
    this.#writers.delete(edge)
  }

  /** The oldest on its way has left, or was consumed. */
  cleared(edge: number): void {
    this.#writers.get(edge)?.leaving.shift()
  }

  /** Edges on which nothing is on its way. */
  *idle(): Generator<number> {
    for (const [edge, { leaving }] of this.#writers) if (leaving.length === 0) yield edge
  }

  send(edge: number, bytes: Uint8Array): void {
    const writer = this.#writers.get(edge)
    if (writer === undefined) return
    writer.leaving.push(bytes.length)
    writer.isInParts = isFragment(bytes)
    this.#post(edge, bytes)
  }

  /** @param next gives an edge's next frame or part, undefined if there is none */
  fill(next: (edge: number) => Uint8Array | undefined): void {
    for (const [edge, writer] of this.#writers) {
      while (canTake(writer)) {
        const bytes = next(edge)
        if (bytes === undefined) break
        this.send(edge, bytes)
      }
    }
  }
}

function canTake({ leaving, isInParts }: EdgeWriter): boolean {
  if (leaving.length === 0) return true
  return isInParts && leaving.reduce((sum, bytes) => sum + bytes, 0) < MOST_WAITING
}

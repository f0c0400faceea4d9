/**
 * Lets sums leave block by block while a network's lower layers are still computed: what the learner tells of a gradient's
 * progress becomes parts on the edges that have nothing else to carry.
 */
import type { AdmbNode } from '../admb/index.js'
import type { GradientProgress } from '../learner/index.js'
import type { EdgeWriters } from './edge-writers.js'

export class StreamingSums implements GradientProgress {
  readonly #node: AdmbNode
  readonly #writers: EdgeWriters
  readonly #period: number
  readonly #now: () => number
  #begun = 0
  /** Milliseconds that the last gradient took. */
  #lastMs = 0

  /** @param period T in milliseconds */
  constructor(node: AdmbNode, writers: EdgeWriters, period: number, now: () => number) {
    this.#node = node
    this.#writers = writers
    this.#period = period
    this.#now = now
  }

  /** A gradient of so many inputs is going to be added. */
  begin(count: number): void {
    this.#begun = this.#now()
    this.#node.startStreaming(count, this.#writers.idle(), this.#lastMs >= this.#period)
  }

  ready(block: number): void {
    for (const { edge, bytes } of this.#node.blockReady(block)) this.#writers.send(edge, bytes)
  }

  revoked(): void {
    this.#node.cancelStreaming()
  }

  /** It was added, to the end or to where it failed. */
  end(): void {
    this.#lastMs = this.#now() - this.#begun
  }
}

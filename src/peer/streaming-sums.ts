/**
 * Sends sums block by block while a network's lower layers are still computed: each block of the gradient that is complete
 * becomes a fragment on the idle edges.
 */
import type { AdmbNode } from '../admb/index.js'
import type { GradientProgress } from '../learner/index.js'
import type { EdgeWriters } from './edge-writers.js'

export class StreamingSums implements GradientProgress {
  readonly #node: AdmbNode
  readonly #writers: EdgeWriters
  readonly #period: number
  readonly #now: () => number
  #startedAt = 0
  /** Duration of the last gradient, in milliseconds. */
  #lastMs = 0

  /** @param period T, in milliseconds */
  constructor(node: AdmbNode, writers: EdgeWriters, period: number, now: () => number) {
    this.#node = node
    this.#writers = writers
    this.#period = period
    this.#now = now
  }

  /** Called before the gradient of `count` inputs is added. */
  begin(count: number): void {
    this.#startedAt = this.#now()
    this.#node.startStreaming(count, this.#writers.idle(), this.#lastMs >= this.#period)
  }

  ready(block: number): void {
    for (const { edge, bytes } of this.#node.blockReady(block)) this.#writers.send(edge, bytes)
  }

  revoked(): void {
    this.#node.cancelStreaming()
  }

  /** Called after it was added, or has failed. */
  end(): void {
    this.#lastMs = this.#now() - this.#startedAt
  }
}

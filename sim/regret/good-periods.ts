/**
 * Theorem 3 counts inputs while the nodes are a connected good set. Here time is good while the nodes that run are linked,
 * by edges of the tree that no partition cuts, and the last fault is so long past that Lemma 1 has brought the best
 * predictor to all of them.
 */
export class GoodPeriods {
  readonly #settling: number
  readonly #areLinked: () => boolean
  /** Inputs of the good periods so far, the one at hand last. */
  readonly #stretches: number[] = [0]
  #since = Number.NEGATIVE_INFINITY
  /** Looked up when the first input that may be good comes: there may be no such input before the next fault. */
  #isLinked: boolean | undefined

  /**
   * @param settling how long after a fault all have the best predictor, in virtual milliseconds
   * @param areLinked whether the running nodes are linked now
   */
  constructor(settling: number, areLinked: () => boolean) {
    this.#settling = settling
    this.#areLinked = areLinked
  }

  /** Inputs of each good period. */
  get stretches(): readonly number[] {
    return this.#stretches
  }

  /** A node or a link has failed or come back. @param now virtual milliseconds */
  changed(now: number): void {
    this.#since = now + this.#settling
    this.#isLinked = undefined
    if (this.#stretches[this.#stretches.length - 1] > 0) this.#stretches.push(0)
  }

  /** An input is served. @returns whether in a good period */
  take(now: number): boolean {
    if (now < this.#since) return false
    this.#isLinked ??= this.#areLinked()
    if (this.#isLinked) this.#stretches[this.#stretches.length - 1]++
    return this.#isLinked
  }
}

/** Whether the nodes that run hang together, by edges that work in both directions. */
export function areLinked(
  nodes: number,
  neighboursOf: (node: number) => Iterable<number>,
  isUp: (node: number) => boolean,
  isCut: (from: number, to: number) => boolean
): boolean {
  const reached = new Uint8Array(nodes)
  const queue: number[] = []
  let running = 0
  for (let node = 0; node < nodes; node++) {
    if (!isUp(node)) continue
    if (running++ > 0) continue
    reached[node] = 1
    queue.push(node)
  }
  for (const node of queue) {
    for (const other of neighboursOf(node)) {
      if (reached[other] || !isUp(other) || isCut(node, other) || isCut(other, node)) continue
      reached[other] = 1
      queue.push(other)
    }
  }
  return queue.length === running
}

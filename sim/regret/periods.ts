/** Periods of a run that the regret accounts distinguish: good periods, and the warm-up until every node has learned. */

/**
 * Good periods in the sense of Theorem 3: the running nodes are linked by edges of the tree that no partition cuts, and enough
 * time has passed since the last fault for the best predictor to reach all of them (Lemma 1).
 */

export class GoodPeriods {
  readonly #recovery: number
  readonly #areLinked: () => boolean
  /** Inputs of each good period, the current one last. */
  readonly #stretches: number[] = [0]
  #since = Number.NEGATIVE_INFINITY
  /** Computed at the first input that may be good, since the next fault may come before it. */
  #isLinked: boolean | undefined

  /**
   * @param recovery virtual milliseconds after a fault until all nodes have the best predictor
   * @param areLinked whether the running nodes are currently linked
   */
  constructor(recovery: number, areLinked: () => boolean) {
    this.#recovery = recovery
    this.#areLinked = areLinked
  }

  /** Inputs of each good period. */
  get stretches(): readonly number[] {
    return this.#stretches
  }

  /** Call when a node or a link fails or recovers. @param now virtual milliseconds */
  changed(now: number): void {
    this.#since = now + this.#recovery
    this.#isLinked = undefined
    if (this.#stretches[this.#stretches.length - 1] > 0) this.#stretches.push(0)
  }

  /** Counts an input. @returns whether it is in a good period */
  take(now: number): boolean {
    if (now < this.#since) return false
    this.#isLinked ??= this.#areLinked()
    if (this.#isLinked) this.#stretches[this.#stretches.length - 1]++
    return this.#isLinked
  }
}

/** Whether the running nodes are connected by edges that work in both directions. */
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

/** Counts the inputs served until every node has an updated predictor. */
export class WarmupTracker {
  readonly #startUpdates: number
  readonly #pending: Set<number>
  #inputs: number | undefined

  /** @param startUpdates updates of the starting predictors */
  constructor(nodes: number, startUpdates: number) {
    this.#startUpdates = startUpdates
    this.#pending = new Set(Array.from({ length: nodes }, (_, node) => node))
  }

  /** Inputs served until every node had held an updated predictor; undefined until then. */
  get inputs(): number | undefined {
    return this.#inputs
  }

  predictorChanged(node: number, updates: number, inputs: number): void {
    if (this.#inputs !== undefined || updates <= this.#startUpdates) return
    this.#pending.delete(node)
    if (this.#pending.size === 0) this.#inputs = inputs
  }
}

/** Periods of a run that the regret accounts distinguish: good periods, and the warm-up until every node has learned. */

/** Messages per hop in the worst case: a step whose parent the receiver does not hold, the request for the predictor, the response. */
const MESSAGES_A_HOP = 3

/** Longest wait in periods until a node repeats what may have been lost, with the tick after it. */
const REPEAT_PERIODS = 65

/**
 * Lemma 1 without faults: virtual ms until the best predictor has reached all nodes. Predictors are forwarded immediately, so a hop
 * takes no period. Those made before the first frames arrive are sent after them.
 * @param delay maximum one-way delay
 */
export function spreadTime(diameter: number, delay: number): number {
  return (MESSAGES_A_HOP * diameter + 1) * delay
}

/**
 * Virtual ms from the last fault until the neighbours at each edge know each other's predictors again. All edges are repaired at
 * the same time. A new session begins with a frame of each end. What was lost at a cut (such a frame, a predictor, a request) is
 * repeated after a backoff, while inputs make sums that name the predictor.
 */
export function repairTime(period: number, delay: number): number {
  return REPEAT_PERIODS * period + 2 * delay
}

/**
 * Good periods in the sense of Theorem 3: the running nodes are linked by edges of the tree that no partition cuts, and enough
 * time has passed since the last fault for the best predictor to reach all of them (Lemma 1). The checkers verify that it is enough
 * (`Progress`).
 */
export class GoodPeriods {
  readonly #recovery: number
  readonly #areLinked: () => boolean
  /** Inputs of each good period, the current one last. */
  readonly #stretches: number[] = [0]
  /** Time of the last fault. */
  #since = Number.NEGATIVE_INFINITY
  /** Computed when it is first needed, since the next fault may come before. */
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

  /** Virtual ms of the last fault, if the running nodes are linked. */
  get linkedSince(): number | undefined {
    this.#isLinked ??= this.#areLinked()
    return this.#isLinked ? this.#since : undefined
  }

  /** Call when a node or a link has failed or recovered. @param now virtual milliseconds */
  changed(now: number): void {
    this.#since = now
    this.#isLinked = undefined
    if (this.#stretches[this.#stretches.length - 1] > 0) this.#stretches.push(0)
  }

  /** Counts an input. @returns whether it is in a good period */
  take(now: number): boolean {
    const isGood = now >= this.#since + this.#recovery && this.linkedSince !== undefined
    if (isGood) this.#stretches[this.#stretches.length - 1]++
    return isGood
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

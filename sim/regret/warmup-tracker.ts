/** When learning has begun everywhere: what an algorithm pays at its start is what was served until then. */

export class WarmupTracker {
  readonly #startUpdates: number
  readonly #waiting: Set<number>
  #inputs: number | undefined

  /** @param startUpdates updates of the predictors that nodes start from */
  constructor(nodes: number, startUpdates: number) {
    this.#startUpdates = startUpdates
    this.#waiting = new Set(Array.from({ length: nodes }, (_, node) => node))
  }

  /** Inputs served until every node had held a predictor with an update beyond its start; undefined before that. */
  get inputs(): number | undefined {
    return this.#inputs
  }

  holds(node: number, updates: number, inputs: number): void {
    if (this.#inputs !== undefined || updates <= this.#startUpdates) return
    this.#waiting.delete(node)
    if (this.#waiting.size === 0) this.#inputs = inputs
  }
}

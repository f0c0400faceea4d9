/**
 * Property 9, where nothing fails: Lemma 1 and Theorem 2 of Dekel et al., "Robust Distributed Online Prediction". A hop of a
 * predictor takes no period, as it is forwarded at once: only the delay of the push, and of a question and its answer where the
 * push was of no use.
 */
import type { Invariant, Site, Turn, WatchedRun } from './invariant.js'
import { Violation } from './violation.js'

/** Messages that a hop may take: a step whose parent is not held, the question for the whole, the answer. */
const MESSAGES_A_HOP = 3

export class Progress implements Invariant {
  readonly #run: WatchedRun
  /** ms in which whatever is best reaches everybody (Lemma 1). */
  readonly #spread: number
  /** Inputs until the next update is everywhere (Theorem 2). */
  readonly #inputs: number
  /** Updates of each node, and how many nodes have how many. */
  readonly #updates: number[] = []
  readonly #counts: number[] = []
  /** When some node first had so many updates. */
  readonly #reached: number[] = []
  #least: number
  #taken = 0
  /** Inputs taken when every node had `#least`. */
  #takenAtLeast = 0

  /** @param delay one-way, in ms, the same for all messages */
  constructor(run: WatchedRun, delay: number) {
    const { batch, period, interval, nodes } = run.scenario
    const { diameter } = run.topology
    this.#run = run
    // What is made before the first frames have arrived waits for them.
    this.#spread = (MESSAGES_A_HOP * diameter + 1) * delay
    // All nodes may take their inputs at one instant: as many may come on top at either end.
    this.#inputs = batch + (2 * (period + 2 * delay) * diameter * nodes) / interval + 2 * nodes
    this.#least = run.scenario.starts === 'distinct' ? 1 : 0
    this.#counts[this.#least] = nodes
    this.#reached[this.#least] = 0
  }

  began({ index, node }: Site): void {
    this.#updates[index] = node.predictor.id.updates
  }

  learned(_site: Site, count: number): void {
    this.#taken += count
    const inputs = this.#taken - this.#takenAtLeast
    if (inputs > this.#inputs) {
      const bound = `${Math.floor(this.#inputs)} inputs (Theorem 2)`
      throw new Violation('progress', `not every node has ${this.#least + 1} updates after ${inputs} of ${bound}`)
    }
  }

  turned({ index, origin }: Site, { predictor }: Turn): void {
    const { now } = this.#run
    const before = this.#updates[index]
    const { updates } = predictor.id
    this.#updates[index] = updates
    this.#counts[before]--
    this.#counts[updates] = (this.#counts[updates] ?? 0) + 1
    this.#reached[updates] ??= now
    // Between two events time does not pass: the wait ends when the last node turns, and is measured then.
    for (let v = before + 1; v <= updates; v++) {
      const waited = now - this.#reached[v]
      if (waited > this.#spread * (1 + 1e-9)) {
        const bound = `${this.#spread.toPrecision(4)} ms (Lemma 1)`
        throw new Violation(
          'progress',
          `${origin} has ${v} updates ${waited.toPrecision(4)} ms after the first, above ${bound}`
        )
      }
    }
    while (this.#counts[this.#least] === 0) {
      this.#least++
      this.#takenAtLeast = this.#taken
    }
  }
}

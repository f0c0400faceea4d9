/**
 * Property 9 (progress), in runs without faults in which predictors are sent without a request: Lemma 1 and Theorem 2 of Dekel et
 * al., "Robust Distributed Online Prediction". Predictors are forwarded immediately, so a hop takes no period, only the delay of
 * the push and, if the receiver cannot use the push, of a request and its response.
 */

import { MAX_PACE } from '../../src/admb/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, CheckedRun, Invariant, PredictorChange } from './invariant.js'

/** Messages per hop in the worst case: a step whose parent the receiver does not hold, the request for the predictor, the response. */
const MESSAGES_A_HOP = 3

export class Progress implements Invariant {
  readonly #run: CheckedRun
  /** Time in ms until the best predictor has reached all nodes (Lemma 1). */
  readonly #spread: number
  /** Inputs until all nodes have the next update (Theorem 2). */
  readonly #inputs: number
  /** Number of updates of each node. */
  readonly #updates: number[] = []
  /** Number of nodes by number of updates. */
  readonly #counts: number[] = []
  /** When a node first reached each number of updates. */
  readonly #reached: number[] = []
  /** Minimum number of updates of all nodes. */
  #minUpdates: number
  #served = 0
  /** Inputs served when every node had reached `#minUpdates`. */
  #servedAtMin = 0

  /** @param delay one-way delay of all messages in ms */
  constructor(run: CheckedRun, delay: number) {
    const { batch, batchMax = batch, autoPeriod, interval, nodes } = run.scenario
    const period = autoPeriod ? MAX_PACE * run.scenario.period : run.scenario.period
    const { diameter } = run.topology
    this.#run = run
    // Predictors created before the first frames arrive are sent after them.
    this.#spread = (MESSAGES_A_HOP * diameter + 1) * delay
    // All nodes may receive inputs at the same instant, at both ends of the interval.
    this.#inputs = batchMax + (2 * (period + 2 * delay) * diameter * nodes) / interval + 2 * nodes
    this.#minUpdates = run.scenario.starts === 'distinct' ? 1 : 0
    this.#counts[this.#minUpdates] = nodes
    this.#reached[this.#minUpdates] = 0
  }

  started({ index, node }: CheckedNode): void {
    this.#updates[index] = node.predictor.id.updates
  }

  learned(_node: CheckedNode, count: number): void {
    this.#served += count
    const inputs = this.#served - this.#servedAtMin
    if (inputs > this.#inputs) {
      const bound = `${Math.floor(this.#inputs)} inputs (Theorem 2)`
      throw new Violation(
        'progress',
        `not all nodes have ${this.#minUpdates + 1} updates after ${inputs} inputs, above ${bound}`
      )
    }
  }

  predictorChanged({ index, origin }: CheckedNode, { predictor }: PredictorChange): void {
    const { now } = this.#run
    const before = this.#updates[index]
    const { updates } = predictor.id
    this.#updates[index] = updates
    this.#counts[before]--
    this.#counts[updates] = (this.#counts[updates] ?? 0) + 1
    this.#reached[updates] ??= now
    // The wait ends when the last node changes, and is measured then.
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
    while (this.#counts[this.#minUpdates] === 0) {
      this.#minUpdates++
      this.#servedAtMin = this.#served
    }
  }
}

/**
 * The link model: delay, loss, duplication and reordering of messages. Each effect has its own random generator, so that
 * enabling one does not change the others.
 */
import { portableExp } from '../../src/learner/exp.js'
import type { Random } from '../engine/random.js'
import type { Scenario } from '../scenario.js'

/** Standard deviation of the logarithm of log-normal delays: a tail like that of the public internet. */
const LOG_NORMAL_SIGMA = 0.8
/** Mean extra delay of a reordered message, in mean delays of its link. */
const REORDER_DELAY = 3

export class Links {
  #scenario: Scenario
  readonly #delays: Random
  readonly #losses: Random
  readonly #duplicates: Random
  readonly #reorders: Random
  readonly #means: Random
  /** Mean delays by pair of nodes, with `linkSpread`. */
  readonly #meanOf = new Map<number, number>()

  constructor(scenario: Scenario, random: Random) {
    this.#scenario = scenario
    this.#delays = random.fork('delay')
    this.#losses = random.fork('loss')
    this.#duplicates = random.fork('duplicate')
    this.#reorders = random.fork('reorder')
    this.#means = random.fork('means')
  }

  /** Ends loss, duplication and reordering. */
  stopFaults(): void {
    this.#scenario = { ...this.#scenario, loss: 0, duplicate: 0, reorder: 0 }
  }

  loses(): boolean {
    const { loss } = this.#scenario
    return loss > 0 && this.#losses.next() < loss
  }

  duplicates(): boolean {
    const { duplicate } = this.#scenario
    return duplicate > 0 && this.#duplicates.next() < duplicate
  }

  /** Mean one-way delay between two nodes in virtual milliseconds, equal in both directions. */
  mean(a: number, b: number): number {
    const { latency, linkSpread, nodes } = this.#scenario
    if (linkSpread === 0) return latency
    const pair = (Math.min(a, b) + 1) * (nodes + 1) + Math.max(a, b)
    let mean = this.#meanOf.get(pair)
    if (mean === undefined) {
      const deviate = this.#means.fork(`${pair}`).normal()
      mean = latency * portableExp(linkSpread * deviate - (linkSpread * linkSpread) / 2)
      this.#meanOf.set(pair, mean)
    }
    return mean
  }

  /** One-way delay of one message in virtual milliseconds. */
  delay(from: number, to: number): number {
    const { reorder } = this.#scenario
    const mean = this.mean(from, to)
    const extra = reorder > 0 && this.#reorders.next() < reorder ? this.#reorders.exponential(REORDER_DELAY * mean) : 0
    return extra + this.#draw(mean)
  }

  #draw(mean: number): number {
    const { delay } = this.#scenario
    switch (delay) {
      case 'constant':
        return mean
      case 'uniform':
        return mean * 2 * this.#delays.next()
      case 'exponential':
        return this.#delays.exponential(mean)
      case 'log-normal':
        return mean * portableExp(LOG_NORMAL_SIGMA * this.#delays.normal() - (LOG_NORMAL_SIGMA * LOG_NORMAL_SIGMA) / 2)
      default:
        return delay satisfies never
    }
  }
}

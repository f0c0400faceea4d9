/**
 * What a link does to a message: how long it takes, whether it is lost, comes twice, or is held up so that later ones
 * overtake it. Each is drawn from a stream of randomness of its own, so that one does not change the other.
 */
import type { Random } from '../engine/random.js'
import type { Scenario } from '../scenario.js'

/** σ of the log-normal delay's logarithm: a tail like that of the public internet. */
const LOG_DEVIATION = 0.8
/** Mean of a reordered message's extra delay, in mean delays of its link. */
const REORDERED_BY = 3

export class Links {
  #scenario: Scenario
  readonly #delays: Random
  readonly #losses: Random
  readonly #duplicates: Random
  readonly #reorders: Random
  readonly #means: Random
  /** Mean delays by the pair of nodes, where they differ. */
  readonly #meanOf = new Map<number, number>()

  constructor(scenario: Scenario, random: Random) {
    this.#scenario = scenario
    this.#delays = random.fork('delay')
    this.#losses = random.fork('loss')
    this.#duplicates = random.fork('duplicate')
    this.#reorders = random.fork('reorder')
    this.#means = random.fork('means')
  }

  /** Nothing is lost, doubled or overtaken any more. */
  calm(): void {
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

  /** Mean one-way delay between two nodes in virtual milliseconds, both ways the same. */
  mean(a: number, b: number): number {
    const { latency, linkSpread, nodes } = this.#scenario
    if (linkSpread === 0) return latency
    const pair = (Math.min(a, b) + 1) * (nodes + 1) + Math.max(a, b)
    let mean = this.#meanOf.get(pair)
    if (mean === undefined) {
      const deviate = this.#means.fork(`${pair}`).normal()
      mean = latency * Math.exp(linkSpread * deviate - (linkSpread * linkSpread) / 2)
      this.#meanOf.set(pair, mean)
    }
    return mean
  }

  /** One-way delay of one message in virtual milliseconds. */
  delay(from: number, to: number): number {
    const { reorder } = this.#scenario
    const mean = this.mean(from, to)
    const extra = reorder > 0 && this.#reorders.next() < reorder ? this.#reorders.exponential(REORDERED_BY * mean) : 0
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
        return mean * Math.exp(LOG_DEVIATION * this.#delays.normal() - (LOG_DEVIATION * LOG_DEVIATION) / 2)
      default:
        return delay satisfies never
    }
  }
}

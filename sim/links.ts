/** What the network does to messages: delay, loss, duplication, partition. */
import type { Random } from './engine/random.js'
import type { Scenario } from './scenario.js'

/** σ of the log-normal delay's logarithm: a tail like that of the public internet. */
const LOG_DEVIATION = 0.8

export class Links {
  readonly #scenario: Scenario
  readonly #random: Random
  #sides: Uint8Array | undefined
  #calm = false

  constructor(scenario: Scenario, random: Random) {
    this.#scenario = scenario
    this.#random = random
  }

  /** How many copies of a message set out: none if it is lost or the way is cut. */
  copies(from: number, to: number): number {
    if (this.#calm) return 1
    if (this.isCut(from, to)) return 0
    const { loss, duplicate } = this.#scenario
    if (loss > 0 && this.#random.next() < loss) return 0
    return duplicate > 0 && this.#random.next() < duplicate ? 2 : 1
  }

  /** One-way delay of a copy in virtual milliseconds; its mean is the scenario's latency. */
  delay(): number {
    const { latency, delay } = this.#scenario
    switch (delay) {
      case 'constant':
        return latency
      case 'uniform':
        return latency * 2 * this.#random.next()
      case 'exponential':
        return this.#random.exponential(latency)
      case 'log-normal':
        return latency * Math.exp(LOG_DEVIATION * this.#random.normal() - (LOG_DEVIATION * LOG_DEVIATION) / 2)
      default:
        return delay satisfies never
    }
  }

  /** Whether a partition lies between two nodes. A service beside the nodes (a negative number) is on side 0. */
  isCut(from: number, to: number): boolean {
    const sides = this.#sides
    return sides !== undefined && (from < 0 ? 0 : sides[from]) !== (to < 0 ? 0 : sides[to])
  }

  partition(sides: Uint8Array): void {
    this.#sides = sides
  }

  heal(): void {
    this.#sides = undefined
  }

  /** Nothing is lost, doubled or cut any more. */
  calm(): void {
    this.heal()
    this.#calm = true
  }
}

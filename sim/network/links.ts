/** What the network does to messages: delay, loss, duplication, partition, clogs. */
import type { Random } from '../engine/random.js'
import type { Partition } from '../faults/schedule.js'
import type { Scenario } from '../scenario.js'

/** σ of the log-normal delay's logarithm: a tail like that of the public internet. */
const LOG_DEVIATION = 0.8

export class Links {
  readonly #scenario: Scenario
  readonly #random: Random
  #partition: Partition | undefined
  readonly #clogged = new Set<string>()
  #calm = false

  constructor(scenario: Scenario, random: Random) {
    this.#scenario = scenario
    this.#random = random
  }

  /** How many copies of a message set out: none if it is lost or the way is cut. */
  copies(from: number, to: number): number {
    if (this.isCut(from, to)) return 0
    if (this.#calm) return 1
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

  /** Whether a partition keeps what one node sends from another. A service beside the nodes (a negative number) is on side 0. */
  isCut(from: number, to: number): boolean {
    if (this.#partition === undefined) return false
    const { sides, oneWay } = this.#partition
    const a = sides[from] ?? 0
    const b = sides[to] ?? 0
    return oneWay ? a < b : a !== b
  }

  partition(partition: Partition): void {
    this.#partition = partition
  }

  heal(): void {
    this.#partition = undefined
  }

  /** Nothing is lost or doubled any more. */
  calm(): void {
    this.#calm = true
  }

  isClogged(from: number, to: number): boolean {
    return this.#clogged.size > 0 && this.#clogged.has(linkKey(from, to))
  }

  clog(from: number, to: number): void {
    this.#clogged.add(linkKey(from, to))
  }

  unclog(from: number, to: number): void {
    this.#clogged.delete(linkKey(from, to))
  }
}

/** A directed link as text. */
export function linkKey(from: number, to: number): string {
  return `${from}>${to}`
}

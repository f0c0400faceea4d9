/** Which way is open now: partitions cut, clogs hold up. */
import type { Partition } from '../faults/schedule.js'

export class Reach {
  #partition: Partition | undefined
  readonly #clogged = new Set<string>()

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

  isClogged(from: number, to: number): boolean {
    return this.#clogged.size > 0 && this.#clogged.has(key(from, to))
  }

  clog(from: number, to: number): void {
    this.#clogged.add(key(from, to))
  }

  unclog(from: number, to: number): void {
    this.#clogged.delete(key(from, to))
  }
}

function key(from: number, to: number): string {
  return `${from}>${to}`
}

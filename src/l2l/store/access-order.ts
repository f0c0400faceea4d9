/** Predicts which blocks are accessed next: in the order of the step before. */

/** Kinds of access: the weights, the average, or the whole block for its update. */
export const PARAMETERS = 0
export const AVERAGE = 1
export const UPDATE = 2
export type Use = typeof PARAMETERS | typeof AVERAGE | typeof UPDATE
const USES = 3

export interface Access {
  readonly block: number
  readonly use: Use
}

export class AccessOrder {
  /** Accesses of the step before, as numbers, and the positions of each of them. */
  #cycle: readonly number[] = []
  #positions = new Map<number, number[]>()
  /** Position of the next access. */
  #cursor = 0
  /** Accesses of this step. */
  #recorded: number[] = []

  /** A step begins. */
  begin(): void {
    this.#cycle = this.#recorded
    this.#recorded = []
    this.#cursor = 0
    this.#positions = new Map()
    for (const [position, key] of this.#cycle.entries()) {
      const positions = this.#positions.get(key)
      if (positions) positions.push(position)
      else this.#positions.set(key, [position])
    }
  }

  note({ block, use }: Access): void {
    const key = block * USES + use
    this.#recorded.push(key)
    const position = this.#cycle.indexOf(key, this.#cursor)
    if (position >= 0) this.#cursor = position + 1
  }

  /** The next accesses, at most `count`. */
  *ahead(count: number): Generator<Access> {
    const { length } = this.#cycle
    for (let i = 0; i < Math.min(count, length); i++) {
      const key = this.#cycle[(this.#cursor + i) % length]
      yield { block: Math.floor(key / USES), use: (key % USES) as Use }
    }
  }

  /** Number of accesses up to the next one, which counts; infinite if none is expected. */
  distance({ block, use }: Access): number {
    const positions = this.#positions.get(block * USES + use)
    if (positions === undefined) return Number.POSITIVE_INFINITY
    const next = positions.find(position => position >= this.#cursor) ?? positions[0] + this.#cycle.length
    return next - this.#cursor + 1
  }
}

/**
 * Memory for gradients that wait to be stepped. A slot fits any layer, and there are as many as help: a model of a billion
 * weights shall not have as many numbers again lying idle.
 */

/** Slots take that many bytes in all, unless that would be fewer than two and one for each server thread. */
const SLOT_BYTES = 2 ** 28

export class GradientSlots {
  readonly memory: readonly Float32Array[]
  /** Which block a slot was last taken for. */
  readonly #takenFor: (number | undefined)[]
  #next = 0

  /** @param make memory for so many numbers */
  constructor(lengths: readonly number[], threads: number, make: (length: number) => Float32Array) {
    const longest = lengths.reduce((most, length) => Math.max(most, length), 0)
    const fit = Math.floor(SLOT_BYTES / Math.max(1, longest * Float32Array.BYTES_PER_ELEMENT))
    const count = threads === 0 ? 1 : Math.min(lengths.length, Math.max(threads + 1, fit))
    this.memory = Array.from({ length: count }, () => make(longest))
    this.#takenFor = this.memory.map(() => undefined)
  }

  /**
   * The slot that was taken longest ago.
   * @param wait until what was in it for that block is no longer needed
   */
  acquire(block: number, wait: (block: number) => void): number {
    const slot = this.#next
    this.#next = (slot + 1) % this.memory.length
    const before = this.#takenFor[slot]
    if (before !== undefined) wait(before)
    this.#takenFor[slot] = block
    return slot
  }
}

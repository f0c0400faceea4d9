/**
 * With a budget of bytes: inputs whose progress is neither in a sum nor in the residual, because a crash has taken it. They are learned
 * again. If a batch has used them, they do not count again, and their progress joins the residual.
 */
import { isIn, NO_INPUTS, type Ranges, type Segment, union, without, withRange } from './journal.js'

export class OwedProgress {
  #inputs: Ranges = NO_INPUTS
  /** Inputs whose progress is only in the open segment. */
  #open: Ranges = NO_INPUTS

  get inputs(): Ranges {
    return this.#inputs
  }

  /** What a crash would take at this moment. */
  get all(): Ranges {
    return union(this.#inputs, this.#open)
  }

  get isAny(): boolean {
    return this.#inputs.length > 0
  }

  restore(inputs: Ranges): void {
    this.#inputs = inputs
  }

  has(input: number): boolean {
    return isIn(this.#inputs, input)
  }

  /** Owed inputs that are in none of these segments, because batches have used their count. */
  outside(segments: readonly Segment[]): Ranges {
    return this.isAny ? segments.reduce((rest, { inputs }) => without(rest, inputs), this.#inputs) : NO_INPUTS
  }

  /** The end of the inputs in [first, end) that are all owed, or all not. */
  endOf(first: number, end: number): number {
    return Math.min(end, this.#inputs.find(bound => bound > first) ?? end)
  }

  /** Inputs [first, end) were learned again, or cannot be. @param isOpen whether their progress is in the open segment */
  remove(first: number, end: number, isOpen: boolean): void {
    this.#inputs = without(this.#inputs, [first, end])
    if (isOpen) this.#open = withRange(this.#open, first, end)
  }

  /** The open segment is closed. */
  close(): void {
    this.#open = NO_INPUTS
  }
}

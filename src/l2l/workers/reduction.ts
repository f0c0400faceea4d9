/**
 * Adds up a layer's gradients of all workers as soon as they are there, in the workers' order, and hands the sum on. This thread
 * does not wait for the others: some of its own gradients may wait for theirs, until the step ends.
 */
import { addToBlock, fillBlock } from '../block-tensors.js'
import type { ParameterStore } from '../executor/types.js'
import { RING_SIZE } from './messages.js'

/** Another worker's gradients, in the order of the step. */
export interface Contributor {
  /** The n-th is in place n mod MOST_AHEAD, from its arrival until as many were reduced. */
  readonly gradients: readonly Float32Array[]
  /** Gradients that are there, those that were reduced included. @throws an error of that worker */
  arrived(): number
  /** Waits for a gradient more than so many. @throws an error of that worker */
  wait(count: number): void
}

interface PendingGradient {
  readonly layer: number
  readonly gradient: Float32Array
}

export class Reduction implements ParameterStore {
  /** Milliseconds spent on waiting for others' gradients. */
  waitedMs = 0
  #reduced = 0
  readonly #pending: PendingGradient[] = []

  /**
   * @param own memory for gradients that wait, MOST_AHEAD arrays for any layer each
   * @param reduced is called after each sum, with how many there are
   */
  constructor(
    private readonly store: ParameterStore,
    private readonly own: readonly Float32Array[],
    private readonly others: readonly Contributor[],
    private readonly reduced: (count: number) => void
  ) {}

  weights(layer: number): Float32Array {
    return this.store.weights(layer)
  }

  pushGradients(layer: number, gradients: readonly Float32Array[]): void {
    if (this.others.length === 0) {
      this.store.pushGradients(layer, gradients)
      return
    }
    if (this.#pending.length === RING_SIZE) this.#reduceNext()
    this.#pending.push({ layer, gradient: this.#copy(gradients) })
    while (this.#pending.length > 0 && this.others.every(other => other.arrived() > this.#reduced)) this.#reduceNext()
  }

  skip(layer: number): void {
    this.store.skip(layer)
  }

  /** Waits until all gradients have been handed on. */
  finish(): void {
    while (this.#pending.length > 0) this.#reduceNext()
  }

  #copy(gradients: readonly Float32Array[]): Float32Array {
    const memory = this.own[(this.#reduced + this.#pending.length) % RING_SIZE]
    return memory.subarray(0, fillBlock(memory, gradients))
  }

  #reduceNext(): void {
    const { layer, gradient } = this.#pending.shift() as PendingGradient
    const start = performance.now()
    for (const other of this.others) other.wait(this.#reduced)
    this.waitedMs += performance.now() - start
    const place = this.#reduced % RING_SIZE
    for (const { gradients } of this.others) addToBlock(gradient, gradients[place].subarray(0, gradient.length))
    this.store.pushGradients(layer, [gradient])
    this.reduced(++this.#reduced)
  }
}

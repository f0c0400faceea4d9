/**
 * Sums each layer's gradients of all workers as soon as they have arrived, in the order of the workers, and pushes the
 * sum to the store. This thread does not block on other workers until RING_SIZE of its own gradients are pending or the
 * step ends.
 */
import type { ParameterStore } from '../executor/types.js'
import { addToBlock, fillBlock } from '../parameter-store.js'
import { RING_SIZE } from './messages.js'

/** Another worker's gradients, in the order of the backward pass. */
export interface Contributor {
  /** A ring: the n-th gradient is at index n mod RING_SIZE from its arrival until it is reduced. */
  readonly gradients: readonly Float32Array[]
  /** Number of gradients that have arrived in this step. @throws an error of the worker */
  arrived(): number
  /** Blocks until more than `count` gradients have arrived. @throws an error of the worker */
  wait(count: number): void
}

interface PendingGradient {
  readonly layer: number
  readonly gradient: Float32Array
}

export class Reduction implements ParameterStore {
  /** Milliseconds spent waiting for other workers. */
  waitedMs = 0
  #reduced = 0
  readonly #pending: PendingGradient[] = []

  /**
   * @param own ring of RING_SIZE buffers for this thread's pending gradients
   * @param reduced called after each sum with the number of sums
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

  /** Blocks until all gradients have been reduced. */
  finish(): void {
    while (this.#pending.length > 0) this.#reduceNext()
  }

  #copy(gradients: readonly Float32Array[]): Float32Array {
    const buffer = this.own[(this.#reduced + this.#pending.length) % RING_SIZE]
    return buffer.subarray(0, fillBlock(buffer, gradients))
  }

  #reduceNext(): void {
    const { layer, gradient } = this.#pending.shift() as PendingGradient
    const start = performance.now()
    for (const other of this.others) other.wait(this.#reduced)
    this.waitedMs += performance.now() - start
    const index = this.#reduced % RING_SIZE
    for (const { gradients } of this.others) addToBlock(gradient, gradients[index].subarray(0, gradient.length))
    this.store.pushGradients(layer, [gradient])
    this.reduced(++this.#reduced)
  }
}

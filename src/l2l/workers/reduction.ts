/** Adds up a layer's gradients of all workers as soon as they are there, in the workers' order, and hands the sum on. */
import type { Host } from '../relay/types.js'
import { REDUCED } from './messages.js'

export class Reduction implements Host {
  /** Milliseconds spent on waiting for others' gradients. */
  waitedMs = 0

  /** @param others each gives its next layer's gradients, flat, when they are there */
  constructor(
    private readonly host: Host,
    private readonly others: readonly (() => Float32Array)[],
    private readonly cells: Int32Array
  ) {}

  weights(layer: number): Float32Array {
    return this.host.weights(layer)
  }

  take(layer: number, gradients: readonly Float32Array[]): void {
    if (this.others.length === 0) {
      this.host.take(layer, gradients)
      return
    }
    const start = performance.now()
    const [sum, ...rest] = this.others.map(other => other())
    this.waitedMs += performance.now() - start
    let at = 0
    for (const part of gradients) {
      for (let i = 0; i < part.length; i++) sum[at + i] += part[i]
      at += part.length
    }
    for (const other of rest) for (let i = 0; i < sum.length; i++) sum[i] += other[i]
    Atomics.add(this.cells, REDUCED, 1)
    Atomics.notify(this.cells, REDUCED)
    this.host.take(layer, [sum])
  }

  skip(layer: number): void {
    this.host.skip(layer)
  }
}

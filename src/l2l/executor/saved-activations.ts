/** Activations that a step saves in the forward pass for the backward pass: on the device, or in host memory. */
import type * as tf from '#tfjs'
import type { Stash } from './types.js'

const key = (position: number, microbatch: number) => `${position}/${microbatch}`
/** More than a layer saves for a microbatch. */
const MOST_TENSORS = 2 ** 10

export class SavedActivations {
  readonly #host: Stash
  readonly #onDevice = new Map<string, readonly tf.Tensor[]>()
  /** Number of tensors on the host. */
  readonly #offloaded = new Map<string, number>()

  /** @param host an empty stash in host memory */
  constructor(host: Stash) {
    this.#host = host
  }

  /** Takes ownership of the tensors. @param offloads whether they move to the host */
  put(position: number, microbatch: number, tensors: readonly tf.Tensor[], offloads: boolean): void {
    if (!offloads) {
      this.#onDevice.set(key(position, microbatch), tensors)
      return
    }
    for (const [i, tensor] of tensors.entries()) this.#host.put(position, MOST_TENSORS * microbatch + i, tensor)
    this.#offloaded.set(key(position, microbatch), tensors.length)
  }

  /** Removes the activations and returns them on the device; undefined if they were not saved. The caller disposes of them. */
  take(position: number, microbatch: number): readonly tf.Tensor[] | undefined {
    const name = key(position, microbatch)
    const saved = this.#onDevice.get(name)
    this.#onDevice.delete(name)
    const count = this.#offloaded.get(name)
    if (count === undefined) return saved
    this.#offloaded.delete(name)
    return Array.from({ length: count }, (_, i) => {
      const index = MOST_TENSORS * microbatch + i
      const tensor = this.#host.borrow(position, index)
      this.#host.drop(position, index)
      return tensor
    })
  }
}

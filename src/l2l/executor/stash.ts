/**
 * Storage of a pass's tensors until they are needed again: on the device or in host memory.
 */
import * as tf from '#tfjs'
import type { Stash, StashLocation } from './types.js'

/** @param isMixed whether some tensors stay on the device */
export function createStash(location: StashLocation, isMixed = false): Stash {
  if (location === 'device') return new DeviceStash()
  return isMixed ? new MixedStash(new HostStash()) : new HostStash()
}

const key = (layer: number, microbatch: number) => `${layer}/${microbatch}`

class DeviceStash implements Stash {
  readonly peakBytes = 0
  readonly #stored = new Map<string, tf.Tensor>()

  put(layer: number, microbatch: number, tensor: tf.Tensor): void {
    this.#stored.set(key(layer, microbatch), tensor)
  }

  borrow(layer: number, microbatch: number): tf.Tensor {
    return this.#stored.get(key(layer, microbatch)) as tf.Tensor
  }

  release(): void {}

  drop(layer: number, microbatch: number): void {
    this.#stored.get(key(layer, microbatch))?.dispose()
    this.#stored.delete(key(layer, microbatch))
  }

  clear(): void {
    for (const tensor of this.#stored.values()) tensor.dispose()
    this.#stored.clear()
  }

  close(): void {
    this.clear()
  }
}

/** A stash off the device, with some tensors on it. */
class MixedStash implements Stash {
  readonly #device = new DeviceStash()
  readonly #onDevice = new Set<string>()
  /** Tensors that `release` must not dispose of. */
  readonly #kept = new WeakSet<tf.Tensor>()

  constructor(private readonly other: Stash) {}

  get peakBytes(): number {
    return this.other.peakBytes
  }

  put(layer: number, microbatch: number, tensor: tf.Tensor, onDevice = false): void {
    if (!onDevice) {
      this.other.put(layer, microbatch, tensor)
      return
    }
    this.#onDevice.add(key(layer, microbatch))
    this.#kept.add(tensor)
    this.#device.put(layer, microbatch, tensor)
  }

  borrow(layer: number, microbatch: number): tf.Tensor {
    return this.#of(layer, microbatch).borrow(layer, microbatch)
  }

  release(tensor: tf.Tensor): void {
    if (!this.#kept.has(tensor)) this.other.release(tensor)
  }

  drop(layer: number, microbatch: number): void {
    this.#of(layer, microbatch).drop(layer, microbatch)
    this.#onDevice.delete(key(layer, microbatch))
  }

  clear(): void {
    this.#device.clear()
    this.#onDevice.clear()
    this.other.clear()
  }

  close(): void {
    this.#device.close()
    this.other.close()
  }

  #of(layer: number, microbatch: number): Stash {
    return this.#onDevice.has(key(layer, microbatch)) ? this.#device : this.other
  }
}

interface HostTensor {
  readonly values: Float32Array | Int32Array
  readonly shape: number[]
  readonly dtype: tf.DataType
}

class HostStash implements Stash {
  peakBytes = 0
  #bytes = 0
  readonly #stored = new Map<string, HostTensor>()

  put(layer: number, microbatch: number, tensor: tf.Tensor): void {
    const { shape, dtype } = tensor
    const values = tensor.dataSync() as Float32Array | Int32Array
    this.#stored.set(key(layer, microbatch), { values, shape, dtype })
    this.#bytes += values.byteLength
    this.peakBytes = Math.max(this.peakBytes, this.#bytes)
    tensor.dispose()
  }

  borrow(layer: number, microbatch: number): tf.Tensor {
    const { values, shape, dtype } = this.#stored.get(key(layer, microbatch)) as HostTensor
    return tf.tensor(values, shape, dtype)
  }

  release(tensor: tf.Tensor): void {
    tensor.dispose()
  }

  drop(layer: number, microbatch: number): void {
    this.#bytes -= this.#stored.get(key(layer, microbatch))?.values.byteLength ?? 0
    this.#stored.delete(key(layer, microbatch))
  }

  clear(): void {
    this.#stored.clear()
    this.#bytes = 0
  }

  close(): void {
    this.clear()
  }
}

/** More than a layer saves for a microbatch. */
const MOST_TENSORS = 2 ** 10

/** Activations that a step saves in the forward pass for the backward pass: on the device, or in host memory. */
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

/**
 * Storage of a pass's tensors until they are needed again: on the device, in host memory, or in a file. Values are
 * restored bit for bit, except that a bfloat16 stash rounds them once.
 */
import { openScratchFile, type ScratchFile } from '#platform'
import * as tf from '#tfjs'
import { sizeOf } from '../../nn/types.js'
import type { Precision, Stash, StashLocation } from './types.js'

/** @param isMixed whether some tensors stay on the device */
export function createStash(location: StashLocation, precision: Precision, isMixed = false): Stash {
  const stash = isMixed && location !== 'device' ? new MixedStash(stashAt(location)) : stashAt(location)
  return precision === 'bf16' ? new Bfloat16Stash(stash) : stash
}

function stashAt(location: StashLocation): Stash {
  switch (location) {
    case 'device':
      return new DeviceStash()
    case 'host':
      return new HostStash()
    case 'disk':
      return new DiskStash()
    default:
      return location satisfies never
  }
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

interface FileTensor extends Omit<HostTensor, 'values'> {
  readonly offset: number
  readonly bytes: number
}

/** Stores all tensors in one file. Space of dropped tensors is reused for tensors of the same size. */
class DiskStash implements Stash {
  readonly peakBytes = 0
  #opened: ScratchFile | undefined
  readonly #stored = new Map<string, FileTensor>()
  readonly #free = new Map<number, number[]>()
  #end = 0

  put(layer: number, microbatch: number, tensor: tf.Tensor): void {
    const { shape, dtype } = tensor
    const values = tensor.dataSync() as Float32Array | Int32Array
    const bytes = values.byteLength
    let offset = this.#free.get(bytes)?.pop()
    if (offset === undefined) {
      offset = this.#end
      this.#end += bytes
    }
    this.#file().write(new Uint8Array(values.buffer, values.byteOffset, bytes), offset)
    this.#stored.set(key(layer, microbatch), { offset, bytes, shape, dtype })
    tensor.dispose()
  }

  borrow(layer: number, microbatch: number): tf.Tensor {
    const { offset, bytes, shape, dtype } = this.#stored.get(key(layer, microbatch)) as FileTensor
    const read = new Uint8Array(bytes)
    this.#file().read(read, offset)
    return tf.tensor(dtype === 'int32' ? new Int32Array(read.buffer) : new Float32Array(read.buffer), shape, dtype)
  }

  release(tensor: tf.Tensor): void {
    tensor.dispose()
  }

  drop(layer: number, microbatch: number): void {
    const stored = this.#stored.get(key(layer, microbatch))
    if (stored === undefined) return
    this.#free.set(stored.bytes, [...(this.#free.get(stored.bytes) ?? []), stored.offset])
    this.#stored.delete(key(layer, microbatch))
  }

  clear(): void {
    this.#stored.clear()
    this.#free.clear()
    this.#end = 0
  }

  close(): void {
    this.#opened?.close()
    this.#opened = undefined
  }

  #file(): ScratchFile {
    this.#opened ??= openScratchFile()
    return this.#opened
  }
}

/** Stores float32 tensors as bfloat16, two numbers in each int32 of another stash: half the memory. */
class Bfloat16Stash implements Stash {
  readonly #shapes = new Map<string, number[]>()

  constructor(private readonly inner: Stash) {}

  get peakBytes(): number {
    return this.inner.peakBytes
  }

  put(layer: number, microbatch: number, tensor: tf.Tensor, onDevice?: boolean): void {
    const pairs = new Int32Array(Math.ceil(tensor.size / 2))
    toBf16(tensor.dataSync() as Float32Array, new Uint16Array(pairs.buffer))
    this.#shapes.set(key(layer, microbatch), tensor.shape)
    tensor.dispose()
    this.inner.put(layer, microbatch, tf.tensor(pairs, [pairs.length], 'int32'), onDevice)
  }

  /** A new float32 tensor. */
  borrow(layer: number, microbatch: number): tf.Tensor {
    const shape = this.#shapes.get(key(layer, microbatch)) as number[]
    const stored = this.inner.borrow(layer, microbatch)
    const pairs = stored.dataSync() as Int32Array
    const halves = new Uint16Array(pairs.buffer, pairs.byteOffset, sizeOf(shape))
    const tensor = tf.tensor(fromBf16(halves), shape)
    this.inner.release(stored)
    return tensor
  }

  release(tensor: tf.Tensor): void {
    tensor.dispose()
  }

  drop(layer: number, microbatch: number): void {
    this.inner.drop(layer, microbatch)
  }

  clear(): void {
    this.inner.clear()
  }

  close(): void {
    this.inner.close()
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

/** Rounds to the nearest bfloat16, ties to even; NaN stays NaN. Returns the bits. */
export function toBf16(values: Float32Array, into = new Uint16Array(values.length)): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length)
  for (let i = 0; i < bits.length; i++) {
    const word = bits[i]
    into[i] = (word & 0x7fffffff) > 0x7f800000 ? (word >>> 16) | 0x40 : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16
  }
  return into
}

/**
 * bfloat16: the upper half of a float32, with the same exponent range and eight bits of precision. Stashed tensors take
 * half the memory; master weights stay float32.
 */
export function fromBf16(halves: Uint16Array): Float32Array {
  const bits = new Uint32Array(halves.length)
  for (let i = 0; i < halves.length; i++) bits[i] = halves[i] << 16
  return new Float32Array(bits.buffer)
}

/** A copy rounded to bfloat16. */
export function roundToBf16(values: Float32Array): Float32Array {
  return fromBf16(toBf16(values))
}

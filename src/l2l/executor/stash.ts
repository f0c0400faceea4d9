/**
 * Where tensors of a pass wait until they are wanted again, by two numbers (layer and microbatch): on the device, in host
 * memory, or in a file. Values come back with equal bits.
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as tf from '@tensorflow/tfjs-core'
import { Bfloat16Stash } from './halved-stash.js'
import type { Precision, Stash, StashLocation } from './types.js'

export function createStash(place: StashLocation, precision: Precision): Stash {
  const stash = stashAt(place)
  return precision === 'bf16' ? new Bfloat16Stash(stash) : stash
}

function stashAt(place: StashLocation): Stash {
  switch (place) {
    case 'device':
      return new DeviceStash()
    case 'host':
      return new HostStash()
    case 'disk':
      return new DiskStash()
    default:
      return place satisfies never
  }
}

const key = (layer: number, microbatch: number) => `${layer}/${microbatch}`

class DeviceStash implements Stash {
  readonly peakBytes = 0
  readonly #kept = new Map<string, tf.Tensor>()

  put(layer: number, microbatch: number, tensor: tf.Tensor): void {
    this.#kept.set(key(layer, microbatch), tensor)
  }

  borrow(layer: number, microbatch: number): tf.Tensor {
    return this.#kept.get(key(layer, microbatch)) as tf.Tensor
  }

  release(): void {}

  drop(layer: number, microbatch: number): void {
    this.#kept.get(key(layer, microbatch))?.dispose()
    this.#kept.delete(key(layer, microbatch))
  }

  clear(): void {
    for (const tensor of this.#kept.values()) tensor.dispose()
    this.#kept.clear()
  }

  close(): void {
    this.clear()
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
  readonly #kept = new Map<string, HostTensor>()

  put(layer: number, microbatch: number, tensor: tf.Tensor): void {
    const { shape, dtype } = tensor
    const values = tensor.dataSync() as Float32Array | Int32Array
    this.#kept.set(key(layer, microbatch), { values, shape, dtype })
    this.#bytes += values.byteLength
    this.peakBytes = Math.max(this.peakBytes, this.#bytes)
    tensor.dispose()
  }

  borrow(layer: number, microbatch: number): tf.Tensor {
    const { values, shape, dtype } = this.#kept.get(key(layer, microbatch)) as HostTensor
    return tf.tensor(values, shape, dtype)
  }

  release(tensor: tf.Tensor): void {
    tensor.dispose()
  }

  drop(layer: number, microbatch: number): void {
    this.#bytes -= this.#kept.get(key(layer, microbatch))?.values.byteLength ?? 0
    this.#kept.delete(key(layer, microbatch))
  }

  clear(): void {
    this.#kept.clear()
    this.#bytes = 0
  }

  close(): void {
    this.clear()
  }
}

interface FileTensor extends Omit<HostTensor, 'values'> {
  readonly at: number
  readonly bytes: number
}

/** One file for all; places that were dropped are used again for tensors of the same size. */
class DiskStash implements Stash {
  readonly peakBytes = 0
  #opened: { readonly folder: string; readonly file: number } | undefined
  readonly #kept = new Map<string, FileTensor>()
  readonly #free = new Map<number, number[]>()
  #end = 0

  put(layer: number, microbatch: number, tensor: tf.Tensor): void {
    const { shape, dtype } = tensor
    const values = tensor.dataSync() as Float32Array | Int32Array
    const bytes = values.byteLength
    let at = this.#free.get(bytes)?.pop()
    if (at === undefined) {
      at = this.#end
      this.#end += bytes
    }
    writeSync(this.#file(), new Uint8Array(values.buffer, values.byteOffset, bytes), 0, bytes, at)
    this.#kept.set(key(layer, microbatch), { at, bytes, shape, dtype })
    tensor.dispose()
  }

  borrow(layer: number, microbatch: number): tf.Tensor {
    const { at, bytes, shape, dtype } = this.#kept.get(key(layer, microbatch)) as FileTensor
    const read = new Uint8Array(bytes)
    readSync(this.#file(), read, 0, bytes, at)
    return tf.tensor(dtype === 'int32' ? new Int32Array(read.buffer) : new Float32Array(read.buffer), shape, dtype)
  }

  release(tensor: tf.Tensor): void {
    tensor.dispose()
  }

  drop(layer: number, microbatch: number): void {
    const kept = this.#kept.get(key(layer, microbatch))
    if (kept === undefined) return
    this.#free.set(kept.bytes, [...(this.#free.get(kept.bytes) ?? []), kept.at])
    this.#kept.delete(key(layer, microbatch))
  }

  clear(): void {
    this.#kept.clear()
    this.#free.clear()
    this.#end = 0
  }

  close(): void {
    if (this.#opened === undefined) return
    closeSync(this.#opened.file)
    rmSync(this.#opened.folder, { recursive: true, force: true })
    this.#opened = undefined
  }

  #file(): number {
    if (this.#opened === undefined) {
      const folder = mkdtempSync(join(tmpdir(), 'admb-stash-'))
      this.#opened = { folder, file: openSync(join(folder, 'stash'), 'w+') }
    }
    return this.#opened.file
  }
}

/** A stash in brain floats: two numbers in each 32-bit integer of another stash, wherever that is. Half the memory, rounded once. */
import * as tf from '@tensorflow/tfjs-core'
import { sizeOf } from '../../nn/shape.js'
import { fromBf16, toBf16 } from '../bfloat16.js'
import type { Stash } from './types.js'

export class Bfloat16Stash implements Stash {
  readonly #shapes = new Map<string, number[]>()

  constructor(private readonly inner: Stash) {}

  get peakBytes(): number {
    return this.inner.peakBytes
  }

  put(layer: number, microbatch: number, tensor: tf.Tensor): void {
    const pairs = new Int32Array(Math.ceil(tensor.size / 2))
    toBf16(tensor.dataSync() as Float32Array, new Uint16Array(pairs.buffer))
    this.#shapes.set(`${layer}/${microbatch}`, tensor.shape)
    tensor.dispose()
    this.inner.put(layer, microbatch, tf.tensor(pairs, [pairs.length], 'int32'))
  }

  /** As float32, in a tensor of its own. */
  borrow(layer: number, microbatch: number): tf.Tensor {
    const shape = this.#shapes.get(`${layer}/${microbatch}`) as number[]
    const kept = this.inner.borrow(layer, microbatch)
    const pairs = kept.dataSync() as Int32Array
    const halves = new Uint16Array(pairs.buffer, pairs.byteOffset, sizeOf(shape))
    const tensor = tf.tensor(fromBf16(halves), shape)
    this.inner.release(kept)
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

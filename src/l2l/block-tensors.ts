/** How a layer's block, which the host keeps, becomes tensors on the device, and how gradients come back. */
import * as tf from '@tensorflow/tfjs-core'
import { openedDevice } from '../device/index.js'
import { sizeOf } from '../nn/shape.js'
import type { Layer, Model } from '../nn/types.js'

/** The number of each layer's block; undefined for layers without weights. */
export function blockIndices({ layers }: Model): readonly (number | undefined)[] {
  let next = 0
  return layers.map(layer => (layer.weights.length > 0 ? next++ : undefined))
}

/** Copies a layer's weights to the device. Whoever asked disposes of them. */
export function upload(layer: Layer, block: Float32Array): tf.Tensor[] {
  let from = 0
  // Where a tensor reads host memory as long as it lives, the host may write there before it is gone.
  const { sharesHostMemory } = openedDevice()
  return layer.weights.map(({ shape }) => {
    const to = from + sizeOf(shape)
    const values = sharesHostMemory ? block.slice(from, to) : block.subarray(from, to)
    from = to
    return tf.tensor(values, shape as number[], 'float32')
  })
}

/** Adds numbers to a block that is at least as long. */
export function addToBlock(block: Float32Array, numbers: Float32Array): void {
  for (let i = 0; i < numbers.length; i++) block[i] += numbers[i]
}

/** Writes gradients of a layer's tensors, each flat, one after the other. @returns how many numbers */
export function fillBlock(block: Float32Array, parts: readonly Float32Array[]): number {
  let at = 0
  for (const part of parts) {
    block.set(part, at)
    at += part.length
  }
  return at
}

/** Adapts a custom layer of a plug-in to `Layer`: checks its shapes and disposes of its tensors. */
import * as tf from '#tfjs'
import { tidyPullback } from '../ops.js'
import { formatShape, sameShape, sizeOf } from '../shape.js'
import type { Layer } from '../types.js'
import { ModelError } from '../types.js'
import { type CustomKind, type CustomLayer, customFactory } from './custom-kinds.js'

/** A layer of a plug-in, with its options. */
export interface CustomLayerSpec {
  readonly kind: CustomKind
  readonly name?: string
  readonly from?: number
  readonly shuffle?: string
  readonly [option: string]: unknown
}

/** @throws ModelError if no plug-in defines the kind, or the layer's shapes are invalid */
export function customLayer(
  { kind, name: _name, from: _from, shuffle: _shuffle, ...options }: CustomLayerSpec,
  name: string,
  input: readonly number[]
): Layer {
  const custom = customFactory(kind)(options, { input, tf })
  const { weights = [], output = input, macs = 0 } = custom
  for (const shape of [output, ...weights.map(({ shape }) => shape)]) checkShape(name, shape)
  const size = weights.reduce((sum, { shape }) => sum + sizeOf(shape), 0)
  const forward = (x: tf.Tensor, w: readonly tf.Tensor[]) => {
    const y = tf.tidy(() => custom.forward(x, w))
    expectShape(`the output of layer ${name}`, y, output)
    return y
  }
  return {
    kind,
    name,
    weights,
    input,
    output,
    activations: [],
    macs,
    initialWeights(random) {
      const block = custom.initial?.(random) ?? new Float32Array(size)
      if (block.length === size) return block
      throw new ModelError(`layer ${name}: initial returned ${block.length} numbers, expected ${size}`)
    },
    forward,
    forwardSaving: (x, w) => ({ y: forward(x, w), saved: [] }),
    vjp: (x, w, dy) => tidyPullback(() => checked(name, custom.vjp(x, w, dy), { input, weights }))
  }
}

function checked(
  name: string,
  { dx, dWeights = [] }: ReturnType<CustomLayer['vjp']>,
  { input, weights }: Pick<Layer, 'input' | 'weights'>
) {
  expectShape(`dx of the vjp of layer ${name}`, dx, input)
  if (dWeights.length !== weights.length) {
    throw new ModelError(`layer ${name}: vjp returned ${dWeights.length} gradients, expected ${weights.length}`)
  }
  dWeights.forEach((gradient, i) => {
    const { name: weight, shape } = weights[i]
    if (sameShape(gradient.shape, shape)) return
    throw new ModelError(
      `layer ${name}: the gradient of ${weight} has shape ${formatShape(gradient.shape)}, expected ${formatShape(shape)}`
    )
  })
  return { dx, dWeights }
}

function checkShape(name: string, shape: readonly number[]): void {
  if (shape.every(axis => Number.isInteger(axis) && axis >= 1)) return
  throw new ModelError(`layer ${name}: invalid shape ${formatShape(shape)}; axes must be positive integers`)
}

function expectShape(what: string, tensor: tf.Tensor, sample: readonly number[]): void {
  const shape = tensor.shape.slice(1)
  if (!sameShape(shape, sample))
    throw new ModelError(`${what} has shape ${formatShape(shape)} per sample, expected ${formatShape(sample)}`)
}

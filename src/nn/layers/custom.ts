/** A layer that a program brought along, made into one of ours: its shapes checked, its tensors disposed of. */
import * as tf from '@tensorflow/tfjs-core'
import { ModelError } from '../errors.js'
import { tidyPullback } from '../scope.js'
import { formatShape, sameShape, sizeOf } from '../shape.js'
import type { Layer } from '../types.js'
import { type CustomKind, type CustomLayer, customFactory } from './custom-kinds.js'

export interface CustomLayerSpec {
  readonly kind: CustomKind
  readonly name?: string
  readonly from?: number
  readonly shuffle?: string
  readonly [option: string]: unknown
}

/** @throws ModelError if no plug-in has the kind, or the layer's shapes make no sense */
export function customLayer(
  { kind, name: _name, from: _from, shuffle: _shuffle, ...options }: CustomLayerSpec,
  name: string,
  input: readonly number[]
): Layer {
  const custom = customFactory(kind)(options, { input, tf })
  const { weights = [], output = input, macs: multiplyAdds = 0 } = custom
  for (const shape of [output, ...weights.map(({ shape }) => shape)]) checkShape(name, shape)
  const size = weights.reduce((sum, { shape }) => sum + sizeOf(shape), 0)
  const forward = (x: tf.Tensor, w: readonly tf.Tensor[]) => {
    const y = tf.tidy(() => custom.forward(x, w))
    expectShape(`layer ${name}: its output`, y, output)
    return y
  }
  return {
    kind,
    name,
    weights,
    input,
    output,
    activations: [],
    macs: multiplyAdds,
    initialWeights(random) {
      const block = custom.initial?.(random) ?? new Float32Array(size)
      if (block.length === size) return block
      throw new ModelError(`layer ${name}: initial must return ${size} numbers, not ${block.length}`)
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
  expectShape(`layer ${name}: dx of its vjp`, dx, input)
  if (dWeights.length !== weights.length) {
    throw new ModelError(`layer ${name}: its vjp gave ${dWeights.length} gradients for ${weights.length} weights`)
  }
  dWeights.forEach((gradient, i) => {
    const { name: weight, shape } = weights[i]
    if (sameShape(gradient.shape, shape)) return
    throw new ModelError(
      `layer ${name}: the gradient of ${weight} is ${formatShape(gradient.shape)}, not ${formatShape(shape)}`
    )
  })
  return { dx, dWeights }
}

function checkShape(name: string, shape: readonly number[]): void {
  if (shape.every(axis => Number.isInteger(axis) && axis >= 1)) return
  throw new ModelError(`layer ${name}: ${formatShape(shape)} is no shape: give whole numbers of at least 1`)
}

function expectShape(what: string, tensor: tf.Tensor, sample: readonly number[]): void {
  const shape = tensor.shape.slice(1)
  if (!sameShape(shape, sample))
    throw new ModelError(`${what} is ${formatShape(shape)} a sample, not ${formatShape(sample)}`)
}

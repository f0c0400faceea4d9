/**
 * Factories of the layer kinds: one for each built-in kind of `spec/layer-kinds.ts`, and an adapter of custom layers of
 * plug-ins.
 */

import * as tf from '#tfjs'
import { tidyPullback } from '../ops.js'
import {
  inputOf,
  isCustomLayer,
  type LayerInput,
  type LayerKind,
  type LayerOptions,
  type LayerSpec
} from '../spec/layer-kinds.js'
import { formatShape, type Layer, ModelError, type Sample, sameShape, sizeOf } from '../types.js'
import { attentionLayer, gatedPerceptronLayer, perceptronLayer, rotaryAttentionLayer } from './block.js'
import { convolution } from './convolution.js'
import { type CustomLayer, type CustomLayerSpec, customFactory } from './custom-kinds.js'
import { dense } from './dense.js'
import { embedding, tokenOutput } from './embedding.js'
import { layerNorm, rmsNorm } from './norms.js'
import { reversibleLayer } from './reversible.js'
import { dropout, firstPool, flatten, maxPool, meanPool } from './weightless.js'

/** Position of a layer in a model. */
interface LayerContext {
  readonly name: string
  /** Shape of a sample's input: the output shape of the layer before. */
  readonly input: readonly number[]
  /** Whether the input is token ids. */
  readonly isTokens: boolean
  /** The model's sample. */
  readonly sample: Sample
  /** The first layer of the model, unless it is this one. */
  readonly first: Layer | undefined
}

type LayerFactory<Kind extends LayerKind> = (options: LayerOptions<Kind>, context: LayerContext) => Layer

const FACTORIES: { readonly [Kind in LayerKind]: LayerFactory<Kind> } = {
  dense: (options, { name, input }) => dense({ ...options, name, input }),
  'layer-norm': (options, { name, input }) => layerNorm({ ...options, name, input }),
  embedding: (options, { name, input: [length], sample }) => {
    const { vocabulary = 0, separator } = sample.kind === 'tokens' ? sample : {}
    const { positions = length } = options
    if (positions > 0 && length > positions) {
      throw new ModelError(
        `layer ${name} has ${positions} positions, and rows have ${length} tokens: use a shorter --length`
      )
    }
    return embedding({ ...options, name, length, vocabulary, separator })
  },
  attention: (options, { name, input: [length, width] }) =>
    attentionLayer({ ...options, name, length, width, isCausal: options.causal, hasShortcut: options.shortcut }),
  mlp: (options, { name, input: [length, width] }) =>
    perceptronLayer({ ...options, name, length, width, hasShortcut: options.shortcut }),
  reversible: (options, { name, input: [length, width] }) =>
    reversibleLayer({ ...options, name, length, width, isCausal: options.causal }),
  dropout: (options, { name, input }) => dropout({ ...options, name, input }),
  convolution: (options, { name, input }) => convolution({ ...options, name, input }),
  'max-pool': (options, { name, input }) => maxPool({ ...options, name, input }),
  flatten: (_, { name, input }) => flatten({ name, input }),
  'mean-pool': (_, { name, input }) => meanPool({ name, input }),
  'first-pool': (_, { name, input }) => firstPool({ name, input }),
  'token-output': ({ tied }, { name, input, first }) => tokenOutput({ name, input, first, tied }),
  'rms-norm': (options, { name, input }) => rmsNorm({ ...options, name, input }),
  'rotary-attention': (options, { name, input: [length, width] }) =>
    rotaryAttentionLayer({
      ...options,
      keyHeads: options.keyHeads ?? options.heads,
      name,
      length,
      width,
      hasShortcut: options.shortcut,
      isRms: true
    }),
  'gated-mlp': (options, { name, input: [length, width] }) =>
    gatedPerceptronLayer({ ...options, name, length, width, hasShortcut: options.shortcut, isRms: true })
}

/** @throws ModelError if the layer does not accept its input */
export function createLayer(spec: LayerSpec, context: LayerContext): Layer {
  const { name, input } = context
  checkInput(inputOf(spec), context)
  if (isCustomLayer(spec)) return customLayer(spec, name, input)
  const factory = FACTORIES[spec.kind] as (options: LayerSpec, context: LayerContext) => Layer
  return factory(spec, context)
}

const AXES: Partial<Record<LayerInput, string>> = {
  sequence: 'length × width',
  image: 'height × width × channels'
}

function checkInput(accepted: LayerInput, { name, input, isTokens }: LayerContext): void {
  if (isTokens && accepted !== 'tokens') {
    throw new ModelError(`layer ${name} takes numbers, but its input is tokens: put an embedding layer first`)
  }
  if (!isTokens && accepted === 'tokens') {
    throw new ModelError(
      `layer ${name} takes tokens, but its input is numbers: an embedding must be the first layer of a text model`
    )
  }
  const axes = AXES[accepted]
  if (axes === undefined || axes.split('×').length === input.length) return
  throw new ModelError(`layer ${name} takes samples of shape ${axes}, got ${formatShape(input)}`)
}

/** @throws ModelError if no plug-in defines the kind, or the layer's shapes are invalid */
function customLayer(
  { kind, name: _name, from: _from, ...options }: CustomLayerSpec,
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

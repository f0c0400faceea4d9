/** Factories of the built-in layer kinds, one for each entry of `spec/layer-kinds.ts`. */
import { formatShape } from '../shape.js'
import {
  inputOf,
  isCustomLayer,
  type LayerInput,
  type LayerKind,
  type LayerOptions,
  type LayerSpec
} from '../spec/layer-kinds.js'
import { type Layer, ModelError, type Sample } from '../types.js'
import { attentionLayer, gatedPerceptronLayer, perceptronLayer, rotaryAttentionLayer } from './block.js'
import { convolution } from './convolution.js'
import { customLayer } from './custom.js'
import { dense } from './dense.js'
import { dropout } from './dropout.js'
import { embedding } from './embedding.js'
import { layerNorm } from './layer-norm.js'
import { maxPool } from './max-pool.js'
import { firstPool, flatten, meanPool } from './reshaping.js'
import { rmsNorm } from './rms-norm.js'
import { tokenOutput } from './token-output.js'

/** Position of a layer in a model. */
export interface LayerContext {
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

/**
 * Expands presets to lists of layers, without the output layer, which depends on the target.
 * Finds the input that a network needs. This loads the schemas of all layers, which a peer with a linear model does not need.
 */

import { ModelError, type Sample } from '../types.js'
import { inputOf, isCustomLayer, type LayerSpec } from './layer-kinds.js'
import type { ModelSpec } from './model-spec.js'

type Preset<Name> = Extract<ModelSpec, { model: Name }>

export function layersOf(spec: ModelSpec): LayerSpec[] {
  switch (spec.model) {
    case 'mlp':
      return mlp(spec)
    case 'convnet':
      return convnet(spec)
    case 'transformer':
      return [...transformer(spec, false, spec.norm), { kind: 'mean-pool', name: 'pool' }]
    case 'gpt':
      return transformer(spec, true, 'before')
    case 'bert':
      return bert(spec)
    case 'gpt2':
      return gpt2(spec)
    case 'llama':
      return llama(spec)
    case 'layers':
      return spec.layers
    default:
      return spec satisfies never
  }
}

function mlp({ hidden, activation, dropout }: Preset<'mlp'>): LayerSpec[] {
  return [
    { kind: 'flatten', name: 'input' },
    ...hidden.flatMap((units, i): LayerSpec[] => [
      { kind: 'dense', name: `hidden${i}`, units, activation },
      ...dropoutOf(dropout, `dropout${i}`)
    ])
  ]
}

function convnet({ filters, size, hidden, dropout }: Preset<'convnet'>): LayerSpec[] {
  return [
    ...filters.flatMap((count, i): LayerSpec[] => [
      {
        kind: 'convolution',
        name: `convolution${i}`,
        filters: count,
        size,
        stride: 1,
        padding: 'same',
        activation: 'relu'
      },
      { kind: 'max-pool', name: `pool${i}`, size: 2 }
    ]),
    { kind: 'flatten', name: 'flat' },
    { kind: 'dense', name: 'hidden', units: hidden, activation: 'relu' },
    ...dropoutOf(dropout, 'dropout')
  ]
}

function transformer(
  { width, layers, heads, inner = 4 * width, dropout, skip: lastSkip, grow }: Preset<'transformer'> | Preset<'gpt'>,
  causal: boolean,
  norm: 'before' | 'after'
): LayerSpec[] {
  // Keeps the variance of the residual stream independent of the depth (Radford et al., 2019).
  const gain = 1 / Math.sqrt(2 * layers)
  const epsilon = norm === 'after' ? 1e-12 : 1e-5
  const common = { norm, epsilon, shortcut: true, dropout, gain }
  const blocks = Array.from({ length: layers }, (_, i): LayerSpec[] => {
    const varying = {
      skip: (lastSkip * (i + 1)) / layers,
      from: grow === undefined ? undefined : i * grow
    }
    return [
      { kind: 'attention', name: `block${i}.attention`, heads, causal, ...common, ...varying },
      { kind: 'mlp', name: `block${i}.mlp`, inner, activation: 'gelu', ...common, ...varying }
    ]
  })
  const finalNorm: LayerSpec = { kind: 'layer-norm', name: 'norm', epsilon }
  return [
    { kind: 'embedding', name: 'embedding', width },
    ...(norm === 'after' ? [finalNorm] : []),
    ...dropoutOf(dropout, 'dropout'),
    ...blocks.flat(),
    ...(norm === 'before' ? [finalNorm] : [])
  ]
}

/** Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", 2019. */
function bert(spec: Preset<'bert'>): LayerSpec[] {
  const { width, positions, dropout, epsilon } = spec
  return [
    { kind: 'embedding', name: 'embedding', width, positions, segments: 2 },
    { kind: 'layer-norm', name: 'norm', epsilon },
    ...dropoutOf(dropout, 'dropout'),
    ...blocksOf(spec, { norm: 'after', causal: false, mask: 'padding' }),
    { kind: 'first-pool', name: 'first' },
    { kind: 'dense', name: 'pooler', units: width, activation: 'tanh' },
    ...dropoutOf(dropout, 'pooler-dropout')
  ]
}

/** Radford et al., "Language Models are Unsupervised Multitask Learners", 2019. */
function gpt2(spec: Preset<'gpt2'>): LayerSpec[] {
  const { width, positions, dropout, epsilon } = spec
  return [
    { kind: 'embedding', name: 'embedding', width, positions },
    ...dropoutOf(dropout, 'dropout'),
    ...blocksOf(spec, { norm: 'before', causal: true }),
    { kind: 'layer-norm', name: 'norm', epsilon },
    { kind: 'token-output', name: 'output', tied: true }
  ]
}

/** Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023. */
function llama(spec: Preset<'llama'>): LayerSpec[] {
  const { width, layers, heads, inner = 4 * width, dropout, keyHeads, theta, epsilon, tied } = spec
  const gain = 1 / Math.sqrt(2 * layers)
  const common = { norm: 'before', epsilon, shortcut: true, dropout, skip: 0, gain } as const
  const blocks = Array.from({ length: layers }, (_, i): LayerSpec[] => [
    { kind: 'rotary-attention', name: `block${i}.attention`, heads, keyHeads, theta, ...common },
    { kind: 'gated-mlp', name: `block${i}.mlp`, inner, ...common }
  ])
  return [
    { kind: 'embedding', name: 'embedding', width, positions: 0 },
    ...blocks.flat(),
    { kind: 'rms-norm', name: 'norm', epsilon },
    { kind: 'token-output', name: 'output', tied }
  ]
}

function blocksOf(
  { width, layers, heads, inner = 4 * width, dropout, activation, epsilon }: Preset<'bert'> | Preset<'gpt2'>,
  { norm, causal, mask }: { norm: 'before' | 'after'; causal: boolean; mask?: 'padding' }
): LayerSpec[] {
  const common = { norm, epsilon, shortcut: true, dropout, skip: 0, gain: 1 / Math.sqrt(2 * layers) }
  return Array.from({ length: layers }, (_, i): LayerSpec[] => [
    { kind: 'attention', name: `block${i}.attention`, heads, causal, mask, ...common },
    { kind: 'mlp', name: `block${i}.mlp`, inner, activation, ...common }
  ]).flat()
}

function dropoutOf(rate: number, name: string): LayerSpec[] {
  return rate > 0 ? [{ kind: 'dropout', name, rate }] : []
}

/**
 * The sample shape for rows of features: a square grey image if the first layer takes images, otherwise the row itself.
 * @param features numbers per row
 * @throws ModelError if the model takes tokens, or takes images and `features` is not a square number
 */
export function sampleFor(spec: ModelSpec, features: number): Sample {
  const input = inputOf(layersOf(spec)[0])
  if (input === 'tokens') throw new ModelError(`model ${spec.model} takes text, not rows of features`)
  if (input !== 'image') return { kind: 'features', shape: [features] }
  const side = Math.round(Math.sqrt(features))
  if (side * side !== features) {
    throw new ModelError(`model ${spec.model} needs square grey images, but ${features} is not a square number`)
  }
  return { kind: 'features', shape: [side, side, 1] }
}

/** Whether the model's embedding tells the texts of a pair apart. */
export function readsPairs(spec: ModelSpec): boolean {
  return layersOf(spec).some(
    layer => !isCustomLayer(layer) && layer.kind === 'embedding' && layer.segments !== undefined
  )
}

/** Whether a layer of the model ignores padding. */
export function masksPadding(spec: ModelSpec): boolean {
  return layersOf(spec).some(layer => !isCustomLayer(layer) && 'mask' in layer && layer.mask === 'padding')
}

/** Whether the model's input is tokens. */
export function readsText(spec: ModelSpec): boolean {
  return inputOf(layersOf(spec)[0]) === 'tokens'
}

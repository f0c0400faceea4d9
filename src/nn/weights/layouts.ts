/**
 * Names and layouts of weights in files: `admb` for this project's names, and Hugging Face's layouts of the models `bert` and
 * `gpt2`.
 */
import type { ModelSpec } from '../spec/model-spec.js'

export const LAYOUTS = ['admb', 'bert', 'gpt2'] as const
export type LayoutName = (typeof LAYOUTS)[number]

/** Where a weight tensor is stored in a file. */
export interface TensorLocation {
  /** Tensors of the file; several are concatenated along the last axis of the weight. */
  readonly names: readonly string[]
  /** Whether the file stores matrices as [outputs, inputs], as PyTorch's linear layers do. */
  readonly isTransposed?: boolean
  /** Names of older files. */
  readonly alternatives?: readonly string[]
  /** Whether the weight keeps its initial value if the file has none of them. @default an error */
  readonly isOptional?: boolean
}

/** The layout in which other programs store the model; `admb` if there is none. */
export function layoutFor({ model }: ModelSpec): LayoutName {
  return model === 'bert' || model === 'gpt2' ? model : 'admb'
}

/** @returns undefined if the layout has no name for the weight */
export function locateWeight(layout: LayoutName, layer: string, weight: string): TensorLocation | undefined {
  switch (layout) {
    case 'admb':
      return { names: [`${layer}.${weight}`] }
    case 'gpt2':
      return gpt2(layer, weight)
    case 'bert':
      return bert(layer, weight)
    default:
      return layout satisfies never
  }
}

/** The prefix of the names, except for the head's. Files of a model without a head lack it. */
export const PREFIXES: Readonly<Record<LayoutName, string>> = { admb: '', bert: 'bert.', gpt2: 'transformer.' }

/** Hugging Face's names of kernel, bias, scale and offset. */
const TERMS: Readonly<Record<string, string>> = { kernel: 'weight', bias: 'bias', scale: 'weight', offset: 'bias' }

function gpt2(layer: string, weight: string): TensorLocation | undefined {
  const fixed: Readonly<Record<string, string>> = {
    'embedding.tokens': 'wte.weight',
    'embedding.positions': 'wpe.weight',
    'norm.scale': 'ln_f.weight',
    'norm.offset': 'ln_f.bias'
  }
  const [, block, half] = /^block(\d+)\.(attention|mlp)$/.exec(layer) ?? []
  if (block === undefined) {
    const name = fixed[`${layer}.${weight}`]
    return name === undefined ? undefined : { names: [`transformer.${name}`] }
  }
  const [part, term] = weight.split('.')
  const parts: Readonly<Record<string, string>> =
    half === 'attention'
      ? { norm: 'ln_1', qkv: 'attn.c_attn', out: 'attn.c_proj' }
      : { norm: 'ln_2', up: 'mlp.c_fc', down: 'mlp.c_proj' }
  if (parts[part] === undefined) return undefined
  return { names: [`transformer.h.${block}.${parts[part]}.${TERMS[term]}`] }
}

function bert(layer: string, weight: string): TensorLocation | undefined {
  const embeddings = 'bert.embeddings'
  const fixed: Readonly<Record<string, TensorLocation>> = {
    'embedding.tokens': { names: [`${embeddings}.word_embeddings.weight`] },
    'embedding.positions': { names: [`${embeddings}.position_embeddings.weight`] },
    'embedding.segments': { names: [`${embeddings}.token_type_embeddings.weight`] },
    'norm.scale': normLocation(`${embeddings}.LayerNorm`, 'scale'),
    'norm.offset': normLocation(`${embeddings}.LayerNorm`, 'offset'),
    'pooler.kernel': { names: ['bert.pooler.dense.weight'], isTransposed: true, isOptional: true },
    'pooler.bias': { names: ['bert.pooler.dense.bias'], isOptional: true },
    // A pretrained model has no classifier.
    'output.kernel': { names: ['classifier.weight'], isTransposed: true, isOptional: true },
    'output.bias': { names: ['classifier.bias'], isOptional: true }
  }
  const [, block, half] = /^block(\d+)\.(attention|mlp)$/.exec(layer) ?? []
  if (block === undefined) return fixed[`${layer}.${weight}`]
  const [part, term] = weight.split('.')
  const at = `bert.encoder.layer.${block}`
  if (part === 'norm')
    return normLocation(`${at}.${half === 'attention' ? 'attention.output' : 'output'}.LayerNorm`, term)
  const parts: Readonly<Record<string, readonly string[]>> = {
    qkv: ['query', 'key', 'value'].map(name => `attention.self.${name}`),
    out: ['attention.output.dense'],
    up: ['intermediate.dense'],
    down: ['output.dense']
  }
  if (parts[part] === undefined) return undefined
  return { names: parts[part].map(name => `${at}.${name}.${TERMS[term]}`), isTransposed: term === 'kernel' }
}

function normLocation(norm: string, term: string): TensorLocation {
  return { names: [`${norm}.${TERMS[term]}`], alternatives: [`${norm}.${term === 'scale' ? 'gamma' : 'beta'}`] }
}

/**
 * Names and layouts of weights in files: `admb` for this project's names, and Hugging Face's layouts of the models `bert`, `gpt2`
 * and `llama`.
 */
import type { ModelSpec } from '../spec/model-spec.js'

export const LAYOUTS = ['admb', 'bert', 'gpt2', 'llama'] as const
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
  return model === 'bert' || model === 'gpt2' || model === 'llama' ? model : 'admb'
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
    case 'llama':
      return llama(layer, weight)
    default:
      return layout satisfies never
  }
}

/** The prefix of the names, except for the head's. Files of a model without a head lack it. */
export const PREFIXES: Readonly<Record<LayoutName, string>> = {
  admb: '',
  bert: 'bert.',
  gpt2: 'transformer.',
  llama: 'model.'
}

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

function llama(layer: string, weight: string): TensorLocation | undefined {
  const fixed: Readonly<Record<string, string>> = {
    'embedding.tokens': 'model.embed_tokens.weight',
    'norm.scale': 'model.norm.weight',
    'output.tokens': 'lm_head.weight'
  }
  const [, block, half] = /^block(\d+)\.(attention|mlp)$/.exec(layer) ?? []
  if (block === undefined) {
    const name = fixed[`${layer}.${weight}`]
    return name === undefined ? undefined : { names: [name] }
  }
  const [part, term] = weight.split('.')
  const parts: Readonly<Record<string, string>> =
    half === 'attention'
      ? { norm: 'input_layernorm', ...projections('self_attn', { query: 'q', key: 'k', value: 'v', out: 'o' }) }
      : { norm: 'post_attention_layernorm', ...projections('mlp', { gate: 'gate', up: 'up', down: 'down' }) }
  if (parts[part] === undefined) return undefined
  return { names: [`model.layers.${block}.${parts[part]}.${TERMS[term]}`], isTransposed: term === 'kernel' }
}

function projections(module: string, names: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(names).map(([part, name]) => [part, `${module}.${name}_proj`]))
}

function normLocation(norm: string, term: string): TensorLocation {
  return { names: [`${norm}.${TERMS[term]}`], alternatives: [`${norm}.${term === 'scale' ? 'gamma' : 'beta'}`] }
}

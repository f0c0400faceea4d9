/**
 * Names and layouts of weights in files: `admb` for this project's names, and Hugging Face's layouts of GPT-2 (model
 * gpt) and BERT (model transformer with norm: after).
 */

export const LAYOUTS = ['admb', 'gpt2', 'bert'] as const
export type LayoutName = (typeof LAYOUTS)[number]

/** Where a weight tensor is stored in a file. */
export interface TensorLocation {
  /** Tensors of the file; several are concatenated along the last axis of the weight. */
  readonly names: readonly string[]
  /** Whether the file stores matrices as [outputs, inputs], as PyTorch's linear layers do. */
  readonly isTransposed?: boolean
  /** Whether the file may have more rows than the weight. */
  readonly mayHaveMoreRows?: boolean
  /** A tensor whose first row is added to each row: BERT's token type embedding of a single text. */
  readonly firstRowOf?: string
  /** Tensors to read if the file does not have `names`. */
  readonly alternatives?: readonly string[]
  /** What to do if the file has none of them: use zeros or keep the initial weights. @default an error */
  readonly ifMissing?: 'zeros' | 'initial'
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

/** Prefixes that files of the layout may have on all names, the longest first. */
export function prefixesOf(layout: LayoutName): readonly string[] {
  return layout === 'gpt2' ? ['transformer.', ''] : layout === 'bert' ? ['bert.', ''] : ['']
}

/** Hugging Face's names of kernel, bias, scale and offset. */
const TERMS: Readonly<Record<string, string>> = { kernel: 'weight', bias: 'bias', scale: 'weight', offset: 'bias' }

function gpt2(layer: string, weight: string): TensorLocation | undefined {
  const fixed: Readonly<Record<string, TensorLocation>> = {
    'embedding.tokens': { names: ['wte.weight'] },
    'embedding.positions': { names: ['wpe.weight'], mayHaveMoreRows: true },
    'norm.scale': { names: ['ln_f.weight'] },
    'norm.offset': { names: ['ln_f.bias'] },
    // Without a separate output layer the token matrix is used. It has no bias.
    'output.kernel': { names: ['lm_head.weight'], isTransposed: true, alternatives: ['wte.weight'] },
    'output.bias': { names: ['lm_head.bias'], ifMissing: 'zeros' }
  }
  const [, block, half] = /^block(\d+)\.(attention|mlp)$/.exec(layer) ?? []
  if (block === undefined) return fixed[`${layer}.${weight}`]
  const [part, term] = weight.split('.')
  const parts: Readonly<Record<string, string>> =
    half === 'attention'
      ? { norm: 'ln_1', qkv: 'attn.c_attn', out: 'attn.c_proj' }
      : { norm: 'ln_2', up: 'mlp.c_fc', down: 'mlp.c_proj' }
  if (parts[part] === undefined) return undefined
  return { names: [`h.${block}.${parts[part]}.${TERMS[term]}`] }
}

function bert(layer: string, weight: string): TensorLocation | undefined {
  const fixed: Readonly<Record<string, TensorLocation>> = {
    'embedding.tokens': { names: ['embeddings.word_embeddings.weight'] },
    'embedding.positions': {
      names: ['embeddings.position_embeddings.weight'],
      mayHaveMoreRows: true,
      firstRowOf: 'embeddings.token_type_embeddings.weight'
    },
    'norm.scale': { names: ['embeddings.LayerNorm.weight'], alternatives: ['embeddings.LayerNorm.gamma'] },
    'norm.offset': { names: ['embeddings.LayerNorm.bias'], alternatives: ['embeddings.LayerNorm.beta'] },
    // A pretrained model has no classifier.
    'output.kernel': { names: ['classifier.weight'], isTransposed: true, ifMissing: 'initial' },
    'output.bias': { names: ['classifier.bias'], ifMissing: 'initial' }
  }
  const [, block, half] = /^block(\d+)\.(attention|mlp)$/.exec(layer) ?? []
  if (block === undefined) return fixed[`${layer}.${weight}`]
  const [part, term] = weight.split('.')
  const at = `encoder.layer.${block}`
  if (part === 'norm') {
    const norm = `${at}.${half === 'attention' ? 'attention.output' : 'output'}.LayerNorm`
    return { names: [`${norm}.${TERMS[term]}`], alternatives: [`${norm}.${term === 'scale' ? 'gamma' : 'beta'}`] }
  }
  const parts: Readonly<Record<string, readonly string[]>> = {
    qkv: ['query', 'key', 'value'].map(name => `attention.self.${name}`),
    out: ['attention.output.dense'],
    up: ['intermediate.dense'],
    down: ['output.dense']
  }
  if (parts[part] === undefined) return undefined
  return { names: parts[part].map(name => `${at}.${name}.${TERMS[term]}`), isTransposed: term === 'kernel' }
}

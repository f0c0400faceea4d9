/**
 * The built-in layer kinds as data: input, options, defaults and help text. To add a kind, add an entry here and its
 * factory in `layers/registry.ts`, whose type requires one factory per entry. This side does not load TensorFlow.js.
 */
import * as z from 'zod'
import type { CustomLayerSpec } from '../layers/custom-kinds.js'
import { isCustomKind } from '../layers/custom-kinds.js'

/**
 * The Gaussian error linear unit (Hendrycks and Gimpel, 2016): `gelu` in its tanh form, as in GPT-2 (`gelu_new` of Hugging
 * Face); `gelu-exact` is z·Φ(z), as in BERT (`gelu` of Hugging Face).
 */
export const ACTIVATIONS = ['none', 'relu', 'gelu', 'gelu-exact', 'tanh'] as const
export type Activation = (typeof ACTIVATIONS)[number]

/**
 * What a kind accepts: numbers of any shape, token ids, [length, width], or [height, width, channels].
 */
export type LayerInput = 'any' | 'tokens' | 'sequence' | 'image'

export interface LayerKindEntry {
  readonly help: string
  readonly input: LayerInput
  readonly options: z.ZodRawShape
}

export const count = z.int().min(1)
export const rate = z.number().min(0).lt(1)
export const activation = z.enum(ACTIVATIONS)
export const epsilon = z.number().positive().default(1e-5).describe('ε added to the variance of the norm')

/** Options of every layer. */
export const COMMON_OPTIONS = {
  name: z
    .string()
    .regex(/^[\w.-]+$/, 'use letters, digits, dots, dashes and underscores only')
    .optional()
    .describe('unique within the model; by default the kind and the index of the layer'),
  from: z.int().min(0).optional().describe('number of updates after which the layer takes part')
}

const residualOptions = {
  norm: z.enum(['before', 'after', 'none']).default('before').describe('position of the layer norm'),
  epsilon,
  shortcut: z.boolean().default(true).describe('whether the layer has a residual connection'),
  dropout: rate.default(0).describe('dropout rate of the output'),
  skip: rate.default(0).describe('fraction of the training steps that skip the layer (stochastic depth)'),
  gain: z.number().min(0).default(1).describe('factor of the initial output kernel')
}

export const LAYER_KINDS = {
  dense: {
    help: 'fully connected layer over the last axis',
    input: 'any',
    options: {
      units: count.describe('number of outputs'),
      activation: activation.default('none').describe('activation function')
    }
  },
  'layer-norm': {
    help: 'layer normalization over the last axis',
    input: 'any',
    options: { epsilon }
  },
  embedding: {
    help: 'token and position embeddings; the first layer of a text model',
    input: 'tokens',
    options: {
      width: count.describe('length of a vector'),
      positions: z
        .int()
        .min(0)
        .optional()
        .describe('number of position vectors, 0 for none; by default the length of a row'),
      segments: count
        .max(2)
        .optional()
        .describe('2: a vector for the texts of a pair each, as in BERT; by default positions only')
    }
  },
  attention: {
    help: 'multi-head self-attention with norm and residual connection',
    input: 'sequence',
    options: {
      heads: count.describe('number of heads; divides the width'),
      causal: z.boolean().default(false).describe('whether a position attends only to itself and earlier positions'),
      mask: z.enum(['padding']).optional().describe('padding: no position attends to padding'),
      ...residualOptions
    }
  },
  mlp: {
    help: 'two-layer perceptron at each position with norm and residual connection',
    input: 'sequence',
    options: {
      inner: count.describe('width between the two projections'),
      activation: activation.default('gelu').describe('activation function'),
      ...residualOptions
    }
  },
  'rms-norm': {
    help: 'root mean square normalization over the last axis',
    input: 'any',
    options: { epsilon }
  },
  'rotary-attention': {
    help: 'causal self-attention with rotary positions and grouped queries, RMS norm and residual connection, as in Llama',
    input: 'sequence',
    options: {
      heads: count.describe('number of heads; divides the width into even numbers'),
      keyHeads: count.optional().describe('number of heads of keys and values; by default as many'),
      theta: z.number().positive().default(10000).describe('base of the wavelengths of the rotation'),
      ...residualOptions
    }
  },
  'gated-mlp': {
    help: 'gated perceptron (SwiGLU) at each position with RMS norm and residual connection, as in Llama',
    input: 'sequence',
    options: { inner: count.describe('width between the projections'), ...residualOptions }
  },
  reversible: {
    help: 'blocks of attention and perceptron on halves of the width, whose backward pass computes inputs from outputs',
    input: 'sequence',
    options: {
      layers: count.default(1).describe('number of blocks'),
      heads: count.describe('number of heads; divides half of the width'),
      causal: z.boolean().default(false).describe('whether a position attends only to itself and earlier positions'),
      mask: z.enum(['padding']).optional().describe('padding: no position attends to padding'),
      inner: count.describe('width between the two projections'),
      activation: activation.default('gelu').describe('activation function'),
      epsilon,
      dropout: rate.default(0).describe('dropout rate of the output of each half'),
      gain: z.number().min(0).default(1).describe('factor of the initial output kernels')
    }
  },
  dropout: {
    help: 'dropout',
    input: 'any',
    options: { rate: rate.describe('probability of zeroing a number in training') }
  },
  convolution: {
    help: 'two-dimensional convolution with bias',
    input: 'image',
    options: {
      filters: count.describe('number of output channels'),
      size: count.describe('height and width of the kernel'),
      stride: count.default(1).describe('stride along both axes'),
      padding: z.enum(['same', 'valid']).default('same').describe('zero padding'),
      activation: activation.default('relu').describe('activation function')
    }
  },
  'max-pool': {
    help: 'maximum over non-overlapping squares',
    input: 'image',
    options: { size: z.int().min(2).default(2).describe('height and width of a square') }
  },
  flatten: { help: 'all numbers of a sample in one row', input: 'any', options: {} },
  'mean-pool': { help: 'mean over the positions of a sequence', input: 'sequence', options: {} },
  'first-pool': { help: 'vector of the first position, as of [CLS] in BERT', input: 'sequence', options: {} },
  'token-output': {
    help: 'scores of all tokens, without bias; the output layer of a language model',
    input: 'sequence',
    options: { tied: z.boolean().default(true).describe('whether it shares the token matrix of the embedding') }
  }
} satisfies Readonly<Record<string, LayerKindEntry>>

export type LayerKind = keyof typeof LAYER_KINDS
/** The options of a kind including the common ones, with defaults applied. */
export type LayerOptions<Kind extends LayerKind> = (typeof LAYER_KINDS)[Kind] extends {
  readonly options: infer Options extends z.ZodRawShape
}
  ? z.output<z.ZodObject<typeof COMMON_OPTIONS & Options>>
  : never
type BuiltInLayerSpec = { [Kind in LayerKind]: { readonly kind: Kind } & LayerOptions<Kind> }[LayerKind]
export type LayerSpec = BuiltInLayerSpec | CustomLayerSpec

export function isCustomLayer(spec: LayerSpec): spec is CustomLayerSpec {
  return isCustomKind(spec.kind)
}

/** What the layer accepts; custom layers check their input themselves. */
export function inputOf(spec: LayerSpec): LayerInput {
  return isCustomLayer(spec) ? 'any' : LAYER_KINDS[spec.kind].input
}

const customSchema = z.looseObject({ kind: z.string().regex(/^custom:/), ...COMMON_OPTIONS })
const builtInSchemas = Object.entries<LayerKindEntry>(LAYER_KINDS).map(([kind, { options }]) =>
  z.strictObject({ kind: z.literal(kind), ...COMMON_OPTIONS, ...options })
)
const [firstSchema, ...otherSchemas] = builtInSchemas
const builtInSchema = z.discriminatedUnion('kind', [firstSchema, ...otherSchemas])

/** Built-in kinds are validated here; the options of a custom kind are passed to its factory as they are. */
export const layerSchema = z.unknown().transform((value, context): LayerSpec => {
  const { kind } = (value ?? {}) as { kind?: unknown }
  const schema = typeof kind === 'string' && isCustomKind(kind) ? customSchema : builtInSchema
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data as LayerSpec
  for (const issue of parsed.error.issues) context.issues.push({ ...issue, input: value } as z.core.$ZodRawIssue)
  return z.NEVER
})

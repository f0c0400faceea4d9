/**
 * Models as data: the name of a ready one with its options, or a list of layers. Comes from YAML or JSON files and from options
 * of commands, hence every mistake is told with its place.
 */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { z } from 'zod'
import { ModelError } from '../errors.js'
import type { CustomLayerSpec } from '../layers/custom.js'
import { isCustomKind } from '../layers/custom-kinds.js'

/** `gelu`: the Gaussian error linear unit in its tanh form (Hendrycks and Gimpel, 2016), as in GPT-2. */
export const ACTIVATIONS = ['none', 'relu', 'gelu', 'tanh'] as const
export type Activation = (typeof ACTIVATIONS)[number]

/** Models that are built from options alone, without a file. */
export const PRESETS = ['mlp', 'convnet', 'transformer', 'gpt'] as const

const count = z.int().min(1)
const rate = z.number().min(0).lt(1)
const activation = z.enum(ACTIVATIONS)
/** What any layer may have. */
const common = {
  /** Unique within the model; by default the layer's number and kind. */
  name: z
    .string()
    .regex(/^[\w.-]+$/, 'give letters, digits, dots, dashes and underscores only')
    .optional(),
  /** Updates after which the layer comes in. */
  from: z.int().min(0).optional(),
  /** Neighbours under the same name change places in training. */
  shuffle: z.string().min(1).optional()
}
const surround = {
  norm: z.enum(['before', 'after', 'none']).default('before'),
  /** ε of the norm. */
  epsilon: z.number().positive().default(1e-5),
  shortcut: z.boolean().default(true),
  dropout: rate.default(0),
  /** Share of the training steps that leave the layer out (stochastic depth). */
  skip: rate.default(0),
  /** Factor of the fresh output kernel's numbers. */
  gain: z.number().min(0).default(1)
}

const ownLayer = z.looseObject({ kind: z.string().regex(/^custom:/), ...common })
const layer = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('dense'), ...common, units: count, activation: activation.default('none') }),
  z.strictObject({ kind: z.literal('layer-norm'), ...common, epsilon: z.number().positive().default(1e-5) }),
  z.strictObject({ kind: z.literal('embedding'), ...common, width: count }),
  z.strictObject({
    kind: z.literal('attention'),
    ...common,
    heads: count,
    causal: z.boolean().default(false),
    ...surround
  }),
  z.strictObject({
    kind: z.literal('mlp'),
    ...common,
    /** Width between its two projections. */
    inner: count,
    activation: activation.default('gelu'),
    ...surround
  }),
  z.strictObject({ kind: z.literal('dropout'), ...common, rate }),
  z.strictObject({
    kind: z.literal('convolution'),
    ...common,
    filters: count,
    /** Height and width of the kernel. */
    size: count,
    stride: count.default(1),
    padding: z.enum(['same', 'valid']).default('same'),
    activation: activation.default('relu')
  }),
  z.strictObject({ kind: z.literal('max-pool'), ...common, size: z.int().min(2).default(2) }),
  z.strictObject({ kind: z.literal('flatten'), ...common }),
  z.strictObject({ kind: z.literal('mean-pool'), ...common })
])

/** Ours by their schema; whatever a plug-in's kind takes is its own affair. */
const anyLayer = z.unknown().transform((value, context): LayerSpec => {
  const { kind } = (value ?? {}) as { kind?: unknown }
  const parsed = (typeof kind === 'string' && isCustomKind(kind) ? ownLayer : layer).safeParse(value)
  if (parsed.success) return parsed.data as LayerSpec
  for (const issue of parsed.error.issues) context.issues.push({ ...issue, input: value } as z.core.$ZodRawIssue)
  return z.NEVER
})

const transformer = {
  width: count.default(128),
  /** Transformer layers, each of which is an attention and an MLP layer. */
  layers: count.default(4),
  heads: count.default(4),
  /** Width inside the MLP layers. Default 4 × width. */
  inner: count.optional(),
  dropout: rate.default(0),
  /** Stochastic depth: how often training leaves out the last layer; those below it less, in proportion to their depth. */
  skip: rate.default(0),
  /** Updates after which each layer follows the one before it into the model. Without it, all are there from the beginning. */
  grow: count.optional(),
  /** Whether attention and MLP layers change places in training. */
  shuffle: z.boolean().optional()
}

const schema = z.discriminatedUnion('model', [
  z.strictObject({
    model: z.literal('mlp'),
    /** Units of the hidden layers. */
    hidden: z.array(count).default([128]),
    activation: activation.default('relu'),
    dropout: rate.default(0)
  }),
  z.strictObject({
    model: z.literal('convnet'),
    /** Filters of the convolutions, each of which is followed by a pooling of 2 × 2. */
    filters: z.array(count).min(1).default([8, 16]),
    /** Height and width of the kernels. */
    size: count.default(5),
    /** Units of the hidden dense layer. */
    hidden: count.default(64),
    dropout: rate.default(0)
  }),
  z.strictObject({
    model: z.literal('transformer'),
    ...transformer,
    /** Where the norm is: `after` is BERT's place. */
    norm: z.enum(['before', 'after']).default('before')
  }),
  z.strictObject({ model: z.literal('gpt'), ...transformer }),
  z.strictObject({ model: z.literal('layers'), name: z.string().default('layers'), layers: z.array(anyLayer).min(1) })
])

export type LayerSpec = z.output<typeof layer> | CustomLayerSpec
export type ModelSpec = z.output<typeof schema>

export function isCustomLayer(spec: LayerSpec): spec is CustomLayerSpec {
  return isCustomKind(spec.kind)
}

/**
 * @param value as from YAML: `{model: NAME, …options}`, or `{layers: [{kind: …}, …]}`
 * @param source what to call it in errors
 * @throws ModelError
 */
export function parseModel(value: unknown, source: string): ModelSpec {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ModelError(`${source} must hold key: value lines, such as "model: mlp"`)
  }
  const given = 'model' in value ? value : { model: 'layers', ...value }
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const at = issue.path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown>)?.[key], given)
  const where = issue.path.length > 0 ? `${issue.path.join('.')}: ` : ''
  throw new ModelError(`${source}: ${where}${messageOf(issue)}${at === undefined ? '' : ` (given: ${shown(at)})`}`)
}

/** What zod says, and for an unknown kind or model which there are. */
function messageOf({ code, message, path }: z.core.$ZodIssue): string {
  if (code !== 'invalid_union') return message
  const known =
    path[path.length - 1] === 'model' ? [...PRESETS, 'layers'] : layer.options.map(({ shape }) => shape.kind.value)
  return `must be one of ${known.join(', ')}`
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

/**
 * @param nameOrFile a ready model, or a YAML or JSON file
 * @throws ModelError
 */
export function loadModel(nameOrFile: string): ModelSpec {
  if ((PRESETS as readonly string[]).includes(nameOrFile)) return parseModel({ model: nameOrFile }, nameOrFile)
  let text: string
  try {
    text = readFileSync(nameOrFile, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ModelError(
      `${nameOrFile}: cannot be read (${code}): give a YAML or JSON file or one of ${PRESETS.join(', ')}`
    )
  }
  let value: unknown
  try {
    value = parse(text)
  } catch (error) {
    throw new ModelError(`${nameOrFile} is not YAML: ${(error as Error).message.split('\n')[0]}`)
  }
  return parseModel(value, nameOrFile)
}

/** Models as data: a preset with its options, or a list of layers, from files or from command options. */
import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { parseYaml } from '../../base/files.js'
import { ModelError } from '../types.js'
import { activation, count, epsilon, LAYER_KINDS, layerSchema, rate } from './layer-kinds.js'

/** Models that need no file. */
export const PRESETS = ['mlp', 'convnet', 'transformer', 'gpt', 'bert', 'gpt2', 'llama'] as const

const transformerOptions = {
  width: count.default(128).describe('length of a position’s vector'),
  layers: count.default(4).describe('number of transformer layers, each an attention and an MLP layer'),
  heads: count.default(4).describe('number of attention heads'),
  inner: count.optional().describe('inner width of the MLP layers; by default 4 × width'),
  dropout: rate.default(0).describe('dropout rate'),
  skip: rate
    .default(0)
    .describe('stochastic depth: skip rate of the last layer; lower layers are skipped in proportion to their depth'),
  grow: count
    .optional()
    .describe('number of updates between the addition of two layers; by default all take part from the start')
}

/** Options of the published architectures. */
const publishedOptions = {
  width: transformerOptions.width,
  layers: transformerOptions.layers,
  heads: transformerOptions.heads,
  inner: transformerOptions.inner,
  positions: count.optional().describe('number of position vectors; by default the length of a row'),
  dropout: rate.default(0).describe('dropout rate')
}

const schema = z.discriminatedUnion('model', [
  z.strictObject({
    model: z.literal('mlp'),
    hidden: z.array(count).default([128]).describe('units of the hidden layers'),
    activation: activation.default('relu').describe('activation function'),
    dropout: rate.default(0).describe('dropout rate')
  }),
  z.strictObject({
    model: z.literal('convnet'),
    filters: z
      .array(count)
      .min(1)
      .default([8, 16])
      .describe('filters of the convolutions, each followed by 2 × 2 max pooling'),
    size: count.default(5).describe('height and width of the kernels'),
    hidden: count.default(64).describe('units of the hidden dense layer'),
    dropout: rate.default(0).describe('dropout rate')
  }),
  z.strictObject({
    model: z.literal('transformer'),
    ...transformerOptions,
    norm: z.enum(['before', 'after']).default('before').describe('position of the layer norms; after as in BERT')
  }),
  z.strictObject({ model: z.literal('gpt'), ...transformerOptions }),
  z.strictObject({
    model: z.literal('bert'),
    ...publishedOptions,
    activation: activation.default('gelu-exact').describe('activation function of the MLP layers'),
    epsilon: epsilon.default(1e-12)
  }),
  z.strictObject({
    model: z.literal('gpt2'),
    ...publishedOptions,
    activation: activation.default('gelu').describe('activation function of the MLP layers'),
    epsilon
  }),
  z.strictObject({
    model: z.literal('llama'),
    width: transformerOptions.width,
    layers: transformerOptions.layers,
    heads: transformerOptions.heads,
    inner: transformerOptions.inner,
    dropout: transformerOptions.dropout,
    keyHeads: count.optional().describe('number of heads of keys and values; by default as many'),
    theta: z.number().positive().default(10000).describe('base of the wavelengths of the rotary positions'),
    epsilon,
    tied: z.boolean().default(false).describe('whether the output layer shares the token matrix of the embedding')
  }),
  z.strictObject({
    model: z.literal('layers'),
    name: z.string().default('layers'),
    layers: z.array(layerSchema).min(1)
  })
])

export type ModelSpec = z.output<typeof schema>

/** The presets' names and the schemas of their options. */
function presetSchemas(): readonly (readonly [string, z.ZodObject])[] {
  return PRESETS.flatMap(name =>
    schema.options.filter(({ shape }) => shape.model.value === name).map(option => [name, option] as const)
  )
}

/**
 * @param value as from YAML: `{model: NAME, …options}`, or `{layers: [{kind: …}, …]}`
 * @param source file or option, for error messages
 * @throws ModelError naming the invalid key
 */
export function parseModel(value: unknown, source: string): ModelSpec {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ModelError(`${source} must hold key: value lines, such as "model: mlp"`)
  }
  const input = 'model' in value ? value : { model: 'layers', ...value }
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const invalid = issue.path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown>)?.[key], input)
  const path = issue.path.length > 0 ? `${issue.path.join('.')}: ` : ''
  const given = invalid === undefined ? '' : ` (given: ${excerpt(invalid)})`
  throw new ModelError(`${source}: ${path}${messageOf(issue)}${given}`)
}

/** The message of zod; for an unknown kind or model, the known ones. */
function messageOf({ code, message, path }: z.core.$ZodIssue): string {
  if (code !== 'invalid_union') return message
  const known = path[path.length - 1] === 'model' ? [...PRESETS, 'layers'] : Object.keys(LAYER_KINDS)
  return `expected one of ${known.join(', ')}`
}

function excerpt(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

/**
 * @param nameOrFile a preset, or a YAML or JSON file
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
      `cannot read ${nameOrFile} (${code}); expected a YAML or JSON file or one of ${PRESETS.join(', ')}`
    )
  }
  let value: unknown
  try {
    value = parseYaml(text)
  } catch (error) {
    throw new ModelError(`${nameOrFile} is not valid YAML: ${(error as Error).message.split('\n')[0]}`)
  }
  return parseModel(value, nameOrFile)
}

/** The presets with their options, for `--model help`. Ranges and defaults come from the schema. */
interface Property {
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly items?: Property
}

/** One entry per preset: its name, then one line per option. */
export function presetHelp(): string {
  const entries = presetSchemas().map(([name, schema]) => {
    const { properties = {} } = z.toJSONSchema(schema, { io: 'input' })
    const lines = Object.entries(properties as Readonly<Record<string, Property>>)
      .filter(([key]) => key !== 'model')
      .map(
        ([key, property]) =>
          `    ${key.padEnd(12)} ${property.description} (${rangeOf(property)}${defaultOf(property)})\n`
      )
    return `${name}\n${lines.join('')}`
  })
  return entries.join('\n')
}

function rangeOf(property: Property): string {
  const { type, minimum, exclusiveMinimum, exclusiveMaximum, items } = property
  if (property.enum !== undefined) return property.enum.join(' or ')
  if (type === 'boolean') return 'true or false'
  if (items !== undefined) return `a list of whole numbers, each ${rangeOf(items)}`
  if (exclusiveMaximum !== undefined) return `from ${minimum} to below ${exclusiveMaximum}`
  return minimum === undefined ? `above ${exclusiveMinimum ?? 0}` : `at least ${minimum}`
}

/** Options without a default say in their description what happens without them. */
function defaultOf({ default: value }: Property): string {
  return value === undefined ? '' : `; default: ${JSON.stringify(value)?.replaceAll('"', '')}`
}

/** The `config.json` of Hugging Face folders: which model it describes, and the configuration of a model of this project. */
import * as z from 'zod'
import type { ModelSpec } from '../spec/model-spec.js'
import { parseModel } from '../spec/model-spec.js'
import type { NetworkSpec, TextSpec } from '../spec/network-spec.js'
import { ModelError } from '../types.js'
import { layoutFor } from './layouts.js'

/** A model as a `config.json` describes it. */
export interface ForeignModel {
  readonly layers: ModelSpec
  readonly vocabulary: number
  readonly positions: number
  /** What it predicts; undefined if the file does not say. */
  readonly target?: 'class' | 'number' | 'next-token'
  /** Number of classes or numbers that the model has been trained to predict, if any. */
  readonly classes?: number
  /** Names of the classes in their order, unless they are placeholders. */
  readonly classNames?: readonly string[]
  /** How text becomes rows, in folders that this project has written. */
  readonly text?: Pick<TextSpec, 'length' | 'alphabet' | 'columns' | 'label' | 'isPair'>
}

const count = z.int().min(1)
const rate = z.number().min(0).lt(1)
const ACTIVATIONS = {
  gelu: 'gelu-exact',
  gelu_new: 'gelu',
  gelu_pytorch_tanh: 'gelu',
  relu: 'relu',
  tanh: 'tanh'
} as const
const activation = z.enum(Object.keys(ACTIVATIONS) as (keyof typeof ACTIVATIONS)[])

const common = {
  vocab_size: count,
  architectures: z.array(z.string()).nullish(),
  id2label: z.record(z.string(), z.string()).nullish(),
  problem_type: z.string().nullish(),
  admb: z
    .object({
      length: count,
      alphabet: z.string().optional(),
      columns: z.array(z.string()).optional(),
      label: z.string().optional(),
      isPair: z.boolean().optional()
    })
    .nullish()
}

const configSchema = z.discriminatedUnion('model_type', [
  z.looseObject({
    model_type: z.literal('bert'),
    ...common,
    hidden_size: count,
    num_hidden_layers: count,
    num_attention_heads: count,
    intermediate_size: count,
    hidden_act: activation.default('gelu'),
    max_position_embeddings: count,
    type_vocab_size: z.literal(2).default(2),
    layer_norm_eps: z.number().positive().default(1e-12),
    hidden_dropout_prob: rate.default(0.1),
    position_embedding_type: z.literal('absolute').default('absolute'),
    is_decoder: z.literal(false).default(false)
  }),
  z.looseObject({
    model_type: z.literal('gpt2'),
    ...common,
    n_embd: count,
    n_layer: count,
    n_head: count,
    n_inner: count.nullish(),
    n_positions: count,
    activation_function: activation.default('gelu_new'),
    layer_norm_epsilon: z.number().positive().default(1e-5),
    resid_pdrop: rate.default(0.1),
    tie_word_embeddings: z.literal(true).default(true),
    scale_attn_weights: z.literal(true).default(true),
    scale_attn_by_inverse_layer_idx: z.literal(false).default(false)
  }),
  z.looseObject({
    model_type: z.literal('llama'),
    ...common,
    hidden_size: count,
    num_hidden_layers: count,
    num_attention_heads: count,
    num_key_value_heads: count.nullish(),
    head_dim: count.nullish(),
    intermediate_size: count,
    hidden_act: z.literal('silu').default('silu'),
    max_position_embeddings: count,
    rms_norm_eps: z.number().positive().default(1e-6),
    rope_theta: z.number().positive().optional(),
    rope_parameters: z
      .looseObject({ rope_theta: z.number().positive().optional(), rope_type: z.literal('default').default('default') })
      .nullish(),
    rope_scaling: z.null().optional(),
    tie_word_embeddings: z.boolean().default(false),
    attention_bias: z.literal(false).default(false),
    mlp_bias: z.literal(false).default(false)
  })
])

/**
 * @param text the contents of a `config.json`
 * @throws ModelError if the file describes no model that this project has
 */
export function readConfig(text: string, source: string): ForeignModel {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    throw new ModelError(`${source} is not valid JSON: ${(error as Error).message}`)
  }
  const parsed = configSchema.safeParse(json)
  if (!parsed.success) {
    const [{ path, message, code }] = parsed.error.issues
    const { model_type: type } = (json ?? {}) as { model_type?: unknown }
    if (code === 'invalid_union') {
      throw new ModelError(`${source}: the model type is ${JSON.stringify(type)}, expected bert, gpt2 or llama`)
    }
    throw new ModelError(`${source}: ${path.join('.')}: ${message}`)
  }
  const config = parsed.data
  return {
    layers: modelOf(config, source),
    vocabulary: config.vocab_size,
    positions: config.model_type === 'gpt2' ? config.n_positions : config.max_position_embeddings,
    target: targetOf(config),
    classNames: classNamesOf(config),
    classes: config.id2label ? Object.keys(config.id2label).length : undefined,
    text: config.admb ?? undefined
  }
}

type Config = z.output<typeof configSchema>

function modelOf(config: Config, source: string): ModelSpec {
  if (config.model_type === 'bert') {
    const { hidden_size: width, num_hidden_layers: layers, num_attention_heads: heads } = config
    const { intermediate_size: inner, max_position_embeddings: positions, hidden_dropout_prob: dropout } = config
    const activation = ACTIVATIONS[config.hidden_act]
    const epsilon = config.layer_norm_eps
    return parseModel({ model: 'bert', width, layers, heads, inner, positions, dropout, activation, epsilon }, source)
  }
  if (config.model_type === 'llama') {
    const { hidden_size: width, num_hidden_layers: layers, num_attention_heads: heads, rms_norm_eps: epsilon } = config
    const { intermediate_size: inner, tie_word_embeddings: tied, head_dim: perHead = width / heads } = config
    if (perHead !== null && perHead * heads !== width) {
      throw new ModelError(`${source}: head_dim: ${heads} heads of ${perHead} numbers, expected ${width} together`)
    }
    const keyHeads = config.num_key_value_heads ?? heads
    const theta = config.rope_parameters?.rope_theta ?? config.rope_theta ?? 10000
    return parseModel({ model: 'llama', width, layers, heads, keyHeads, inner, theta, epsilon, tied }, source)
  }
  const { n_embd: width, n_layer: layers, n_head: heads, n_positions: positions, resid_pdrop: dropout } = config
  const inner = config.n_inner ?? 4 * width
  const activation = ACTIVATIONS[config.activation_function]
  const epsilon = config.layer_norm_epsilon
  return parseModel({ model: 'gpt2', width, layers, heads, inner, positions, dropout, activation, epsilon }, source)
}

function targetOf({ model_type, architectures, problem_type }: Config): ForeignModel['target'] {
  if (model_type !== 'bert') return 'next-token'
  if (problem_type === 'regression') return 'number'
  return architectures?.some(name => name.endsWith('ForSequenceClassification')) ? 'class' : undefined
}

function classNamesOf({ id2label }: Config): readonly string[] | undefined {
  const names = Object.entries(id2label ?? {}).sort(([a], [b]) => Number(a) - Number(b))
  if (names.length < 2 || names.every(([id, name]) => name === `LABEL_${id}`)) return undefined
  return names.map(([, name]) => name)
}

/**
 * @param endOfText the token between texts, for language models
 * @throws ModelError if no model of Hugging Face is like this one
 */
export function writeConfig(
  { layers, sample, target, text }: NetworkSpec,
  endOfText: number | undefined
): Readonly<Record<string, unknown>> {
  if (layoutFor(layers) === 'admb' || !('epsilon' in layers) || sample.kind !== 'tokens' || text === undefined) {
    throw new ModelError(`the model ${layers.model} has no counterpart: give --layout admb`)
  }
  const { length, alphabet, columns, label, isPair } = text
  const both = { vocab_size: sample.vocabulary, dtype: 'float32', admb: { length, alphabet, columns, label, isPair } }
  const { width, heads, inner = 4 * width, dropout, epsilon } = layers
  if (layers.model === 'llama') {
    const { keyHeads = heads, theta, tied } = layers
    return {
      architectures: ['LlamaForCausalLM'],
      model_type: 'llama',
      ...both,
      hidden_size: width,
      num_hidden_layers: layers.layers,
      num_attention_heads: heads,
      num_key_value_heads: keyHeads,
      intermediate_size: inner,
      hidden_act: 'silu',
      max_position_embeddings: text.length,
      rms_norm_eps: epsilon,
      rope_theta: theta,
      rope_parameters: { rope_type: 'default', rope_theta: theta },
      tie_word_embeddings: tied,
      bos_token_id: endOfText,
      eos_token_id: endOfText
    }
  }
  const { positions = length } = layers
  const [name = 'gelu'] = Object.entries(ACTIVATIONS).find(([, known]) => known === layers.activation) ?? []
  if (layers.model === 'gpt2') {
    return {
      architectures: ['GPT2LMHeadModel'],
      model_type: 'gpt2',
      ...both,
      n_embd: width,
      n_layer: layers.layers,
      n_head: heads,
      n_inner: inner,
      n_positions: positions,
      activation_function: name,
      layer_norm_epsilon: epsilon,
      resid_pdrop: dropout,
      embd_pdrop: dropout,
      attn_pdrop: 0,
      tie_word_embeddings: true,
      bos_token_id: endOfText,
      eos_token_id: endOfText
    }
  }
  return {
    architectures: ['BertForSequenceClassification'],
    model_type: 'bert',
    ...both,
    hidden_size: width,
    num_hidden_layers: layers.layers,
    num_attention_heads: heads,
    intermediate_size: inner,
    hidden_act: name,
    max_position_embeddings: positions,
    type_vocab_size: 2,
    layer_norm_eps: epsilon,
    hidden_dropout_prob: dropout,
    attention_probs_dropout_prob: 0,
    pad_token_id: sample.padding,
    ...headOf(target, text)
  }
}

function headOf(target: NetworkSpec['target'], { classNames = [] }: TextSpec): Readonly<Record<string, unknown>> {
  if (target.kind === 'number')
    return { problem_type: 'regression', id2label: { 0: 'LABEL_0' }, label2id: { LABEL_0: 0 } }
  return {
    problem_type: 'single_label_classification',
    id2label: Object.fromEntries(classNames.map((name, id) => [id, name])),
    label2id: Object.fromEntries(classNames.map((name, id) => [name, id]))
  }
}

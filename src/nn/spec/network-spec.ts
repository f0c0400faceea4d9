/**
 * A complete network as plain data, stored with a predictor and compared between peers, with the choice of layers that are
 * trained: all, all but frozen ones, or low-rank adapters of frozen ones (LoRA).
 */
import * as z from 'zod'
import { createSha256 } from '#platform'
import type { TargetScale } from '../../learning/index.js'
import { ModelError, type Sample } from '../types.js'
import type { ModelSpec } from './model-spec.js'

/** The kinds of layers that get adapters. */
const LORA_LAYERS = {
  attention: ['attention', 'rotary-attention'],
  mlp: ['mlp', 'gated-mlp'],
  all: ['attention', 'rotary-attention', 'mlp', 'gated-mlp', 'dense']
} as const

const loraSchema = z.strictObject({
  rank: z.int().min(1).default(8).describe('columns of A and rows of B'),
  alpha: z.number().positive().optional().describe('A·B is multiplied by alpha / rank; by default 2 × rank'),
  layers: z
    .enum(Object.keys(LORA_LAYERS) as (keyof typeof LORA_LAYERS)[])
    .default('attention')
    .describe('kernels that get adapters; all: those of attention, mlp and dense layers')
})

/** Low-rank adapters, as options. */
export type LoraOptions = z.input<typeof loraSchema>

/** The layers that are trained, as peers agree on them. Everything that is not trained starts from the network's weights and stays. */
export interface TuningSpec {
  /** Layers whose weights do not change, as in `--freeze`. @default none */
  readonly freeze?: readonly string[]
  /** All layers are frozen, except for `heads`; layers of these kinds that `freeze` does not name have adapters. */
  readonly lora?: { readonly rank: number; readonly alpha: number; readonly layers: keyof typeof LORA_LAYERS }
  /** With `lora`: names of layers that are trained whole. */
  readonly heads?: readonly string[]
}

/** How a layer is trained. */
type LayerTuning = 'whole' | 'frozen' | 'adapters'

/** @throws ModelError for options out of range */
export function loraOf(options: LoraOptions): NonNullable<TuningSpec['lora']> {
  const parsed = loraSchema.safeParse(options)
  if (parsed.success) {
    const { rank, alpha = 2 * rank, layers } = parsed.data
    return { rank, alpha, layers }
  }
  const [{ path, message, code }] = parsed.error.issues
  const known = Object.keys(loraSchema.shape).join(', ')
  throw new ModelError(`lora: ${code === 'unrecognized_keys' ? `expected ${known}` : `${path.join('.')}: ${message}`}`)
}

/**
 * @param layers of the whole network, in order; those without weights cannot be frozen
 * @throws ModelError for a name that no layer has, or if nothing would be trained or no layer adapted
 */
export function layerTunings(
  layers: readonly { readonly name: string; readonly kind: string; readonly isEmpty: boolean }[],
  { freeze = [], lora, heads = [] }: TuningSpec
): LayerTuning[] {
  const frozen = new Set(freeze.flatMap(word => named(word, layers)))
  const kinds: readonly string[] = lora === undefined ? [] : LORA_LAYERS[lora.layers]
  const tunings = layers.map(({ name, kind, isEmpty }, l): LayerTuning => {
    if (isEmpty) return 'frozen'
    if (lora === undefined || heads.includes(name)) return frozen.has(l) ? 'frozen' : 'whole'
    return !frozen.has(l) && kinds.includes(kind) ? 'adapters' : 'frozen'
  })
  if (lora !== undefined && !tunings.includes('adapters')) {
    throw new ModelError(
      `lora: the network has no ${kinds.join(' or ')} layer to adapt: give other layers, or freeze fewer`
    )
  }
  if (tunings.every(tuning => tuning === 'frozen')) throw new ModelError('no layer is trained: freeze fewer layers')
  return tunings
}

/** Indices of the layers that a word of `--freeze` names. */
function named(word: string, layers: Parameters<typeof layerTunings>[0]): number[] {
  const [, first, last = first] = /^layers:(\d+)(?:-(\d+))?$/.exec(word) ?? []
  const found = [...layers.keys()].filter(l => {
    const { name, kind } = layers[l]
    if (word === 'embeddings')
      return kind === 'embedding' || (/-norm$/.test(kind) && layers[l - 1]?.kind === 'embedding')
    if (first === undefined) return name === word
    const [, block] = /^block(\d+)\./.exec(name) ?? []
    return block !== undefined && Number(block) >= Number(first) && Number(block) <= Number(last)
  })
  if (found.some(l => !layers[l].isEmpty)) return found
  const names = layers.filter(({ isEmpty }) => !isEmpty).map(({ name }) => name)
  throw new ModelError(
    `freeze: no layer with weights is called ${word}; give embeddings, layers:FIRST-LAST, or names of ${listOf(names)}`
  )
}

function listOf(names: readonly string[]): string {
  return names.length > 8 ? `${names.slice(0, 6).join(', ')}, …, ${names.at(-1)}` : names.join(', ')
}

/** For people, and to compare: as in the options. */
export function describeTuning({ freeze, lora, heads = [] }: TuningSpec): {
  readonly freeze: string
  readonly lora: string
} {
  const adapters = lora && `rank=${lora.rank},alpha=${lora.alpha},layers=${lora.layers}`
  const whole = heads.length > 0 ? ` and ${heads.join(', ')}` : ''
  return { freeze: freeze?.join(',') ?? 'none', lora: adapters === undefined ? 'none' : `${adapters}${whole}` }
}

/**
 * What the network predicts: one of `classes` classes, a number (standardised by `scale` if there is one), or the next token at
 * each position.
 */
export type Target =
  | { readonly kind: 'class'; readonly classes: number }
  | { readonly kind: 'number'; readonly scale?: TargetScale }
  | { readonly kind: 'next-token' }

/** A network as peers agree on it: layers, sample and target. */
export interface NetworkSpec {
  readonly layers: ModelSpec
  readonly sample: Sample
  readonly target: Target
  /** For networks on text. */
  readonly text?: TextSpec
  /** Digest of the checkpoint that the network starts from. @default none: weights drawn from a seed */
  readonly weights?: string
  /** The layers that are trained. @default all */
  readonly tuning?: TuningSpec
}

/** How text becomes tokens. */
export interface TextSpec {
  /** Tokens per row. */
  readonly length: number
  /** Characters with a token each, for the character tokenizer. */
  readonly alphabet?: string
  /** The contents of a `tokenizer.json`, for word pieces and byte pairs. */
  readonly pieces?: string
  /** Columns or keys of the text, which are joined by a space unless they are a pair. */
  readonly columns?: readonly string[]
  /** The two columns are a pair of texts. @default false */
  readonly isPair?: boolean
  /** Column or key of the label. */
  readonly label?: string
  /** Label texts in the order of their class ids. */
  readonly classNames?: readonly string[]
}

/** Canonical JSON: equal for equal networks. */
export function networkText({ layers, sample, target, text, weights, tuning }: NetworkSpec): string {
  return JSON.stringify(sortKeys({ layers, sample, target, text, weights, tuning }))
}

/** A short id for people to compare: the model's name and 32 bits of a hash of the canonical JSON. */
export function networkName(spec: NetworkSpec): string {
  const name = spec.layers.model === 'layers' ? spec.layers.name : spec.layers.model
  return `${name}#${shortHash(networkText(spec))}`
}

/** The same for a tokenizer. */
export function tokenizerName({ alphabet, pieces }: TextSpec): string {
  return pieces === undefined ? `characters#${shortHash(alphabet ?? '')}` : `pieces#${shortHash(pieces)}`
}

function shortHash(text: string): string {
  const hash = createSha256()
  hash.update(new TextEncoder().encode(text))
  return hash.digest('hex').slice(0, 8)
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, field]) => field !== undefined)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, field]) => [key, sortKeys(field)]))
}

/** A complete network as plain data: stored with a predictor, and compared between peers. */
import { createSha256 } from '#platform'
import type { TargetScale } from '../../learner/index.js'
import type { Sample } from '../types.js'
import type { ModelSpec } from './model-spec.js'
import type { TuningSpec } from './tuning.js'

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
  /** Which layers are trained. @default all */
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

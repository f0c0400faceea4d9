/** A network as plain data, complete: what is stored with a predictor, and what peers compare. */
import { createHash } from 'node:crypto'
import type { Sample } from '../types.js'
import type { ModelSpec } from './model-spec.js'

/** What is to be predicted: a class of so many, a number, or for each position the token that follows. */
export type Target =
  | { readonly kind: 'class'; readonly classes: number }
  | { readonly kind: 'number' }
  | { readonly kind: 'next-token' }

export interface NetworkSpec {
  readonly layers: ModelSpec
  readonly sample: Sample
  readonly target: Target
  /** Where its inputs are text. */
  readonly text?: TextSpec
}

/** How text becomes tokens. */
export interface TextSpec {
  /** Tokens a row. */
  readonly length: number
  /** A token for each of these characters. */
  readonly alphabet?: string
  /** Or word pieces or byte pairs: what a `tokenizer.json` holds. */
  readonly pieces?: string
  /** Label texts in the order of their class numbers. */
  readonly classNames?: readonly string[]
}

/** Canonical text: equal for equal networks. */
export function networkText({ layers, sample, target, text }: NetworkSpec): string {
  return JSON.stringify(sorted({ layers, sample, target, text }))
}

/** What people compare: the model's name, and 32 bits of its text. */
export function networkName(spec: NetworkSpec): string {
  const name = spec.layers.model === 'layers' ? spec.layers.name : spec.layers.model
  return `${name}#${createHash('sha256').update(networkText(spec)).digest('hex').slice(0, 8)}`
}

/** With the keys of every object in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, part]) => part !== undefined)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, part]) => [key, sorted(part)]))
}

/** A network as plain data, complete: what is stored with a predictor, and what peers compare. */
import { createHash } from 'node:crypto'
import type { Target } from './models/create.js'
import type { ModelSpec } from './models/spec.js'
import type { Sample } from './types.js'

export interface NetworkSpec {
  readonly layers: ModelSpec
  readonly sample: Sample
  readonly target: Target
}

/** Canonical text: equal for equal networks. */
export function networkText({ layers, sample, target }: NetworkSpec): string {
  return JSON.stringify(sorted({ layers, sample, target }))
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

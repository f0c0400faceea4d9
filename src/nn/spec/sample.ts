/** What a row of features is to a model: convolutions want images, all others take the row as it is. */
import { ModelError } from '../errors.js'
import type { Sample } from '../types.js'
import type { ModelSpec } from './model-spec.js'
import { layersOf } from './presets.js'

/**
 * @param features numbers a row
 * @throws ModelError if the model takes tokens, or images and the rows are none
 */
export function sampleFor(spec: ModelSpec, features: number): Sample {
  if (readsText(spec)) {
    throw new ModelError(`model ${spec.model} reads text, not rows of features`)
  }
  const [{ kind }] = layersOf(spec)
  if (kind !== 'convolution' && kind !== 'max-pool') return { kind: 'features', shape: [features] }
  const side = Math.round(Math.sqrt(features))
  if (side * side !== features) {
    throw new ModelError(`model ${spec.model} needs square grey images, and ${features} features are none`)
  }
  return { kind: 'features', shape: [side, side, 1] }
}

/** Whether the model's inputs are tokens. */
export function readsText(spec: ModelSpec): boolean {
  return layersOf(spec)[0].kind === 'embedding'
}

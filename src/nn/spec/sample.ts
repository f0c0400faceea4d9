/** The input of a network. This loads the schemas of all layers, which a peer with a linear model does not need. */
import { ModelError, type Sample } from '../types.js'
import { inputOf, isCustomLayer } from './layer-kinds.js'
import type { ModelSpec } from './model-spec.js'
import { layersOf } from './presets.js'

/**
 * The sample shape for rows of features: a square grey image if the first layer takes images, otherwise the row itself.
 * @param features numbers per row
 * @throws ModelError if the model takes tokens, or takes images and `features` is not a square number
 */
export function sampleFor(spec: ModelSpec, features: number): Sample {
  const input = inputOf(layersOf(spec)[0])
  if (input === 'tokens') throw new ModelError(`model ${spec.model} takes text, not rows of features`)
  if (input !== 'image') return { kind: 'features', shape: [features] }
  const side = Math.round(Math.sqrt(features))
  if (side * side !== features) {
    throw new ModelError(`model ${spec.model} needs square grey images, but ${features} is not a square number`)
  }
  return { kind: 'features', shape: [side, side, 1] }
}

/** Whether the model's embedding tells the texts of a pair apart. */
export function readsPairs(spec: ModelSpec): boolean {
  return layersOf(spec).some(
    layer => !isCustomLayer(layer) && layer.kind === 'embedding' && layer.segments !== undefined
  )
}

/** Whether a layer of the model ignores padding. */
export function masksPadding(spec: ModelSpec): boolean {
  return layersOf(spec).some(layer => !isCustomLayer(layer) && layer.kind === 'attention' && layer.mask === 'padding')
}

/** Whether the model's input is tokens. */
export function readsText(spec: ModelSpec): boolean {
  return inputOf(layersOf(spec)[0]) === 'tokens'
}

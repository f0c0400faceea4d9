/** From a model's description and what its data looks like to layers and a head. */

import { checkLayerOrders } from './check-order.js'
import { ModelError } from './errors.js'
import { attentionLayer, perceptronLayer } from './layers/block.js'
import { convolution } from './layers/convolution.js'
import { customLayer } from './layers/custom.js'
import { dense } from './layers/dense.js'
import { dropout } from './layers/dropout.js'
import { embedding } from './layers/embedding.js'
import { layerNorm } from './layers/layer-norm.js'
import { maxPool } from './layers/max-pool.js'
import { flatten, meanPool } from './layers/reshaping.js'
import { softmaxHead } from './losses/softmax.js'
import { squaredHead } from './losses/squared.js'
import { formatShape, sameShape } from './shape.js'
import { isCustomLayer, type LayerSpec, type ModelSpec } from './spec/model-spec.js'
import type { Target } from './spec/network-spec.js'
import { layersOf } from './spec/presets.js'
import type { Head, Layer, Model, Sample } from './types.js'

/**
 * The model ends in a dense layer `output` with a number for each class (or token), or one number; a list of layers that has
 * this shape already is left as it is.
 *
 * @throws ModelError naming the layer that does not fit what comes in
 */
export function createModel(spec: ModelSpec, sample: Sample, target: Target): Model {
  const specs = layersOf(spec)
  const layers: Layer[] = []
  let shape = sample.shape
  let isTokens = sample.kind === 'tokens'
  specs.forEach((layer, i) => {
    const name = layer.name ?? `${layer.kind}${i}`
    const made = build(layer, { name, shape, isTokens, sample })
    layers.push({ ...made, from: layer.from, shuffle: layer.shuffle })
    shape = made.output
    isTokens = false
  })
  if (isTokens) throw new ModelError('tokens need an embedding before anything else')
  const wanted = outputOf(target, sample)
  if (spec.model !== 'layers' || !sameShape(shape, wanted)) layers.push(outputLayer(shape, wanted))
  checkNames(layers)
  checkLayerOrders(layers, wanted)
  const name = spec.model === 'layers' ? spec.name : spec.model
  return { name, sample, layers, head: headFor(target, wanted) }
}

interface Place {
  readonly name: string
  readonly shape: readonly number[]
  readonly isTokens: boolean
  readonly sample: Sample
}

function build(spec: LayerSpec, place: Place): Layer {
  const { name, shape, sample } = place
  if (place.isTokens !== (spec.kind === 'embedding')) {
    throw new ModelError(
      place.isTokens
        ? `layer ${name} needs numbers, but tokens come in: put an embedding first`
        : `layer ${name} needs tokens, but numbers come in: an embedding can only be the first layer of a text model`
    )
  }
  if (isCustomLayer(spec)) return customLayer(spec, name, shape)
  switch (spec.kind) {
    case 'dense':
      return dense({ ...spec, name, input: shape })
    case 'layer-norm':
      return layerNorm({ ...spec, name, input: shape })
    case 'embedding':
      return embedding({ name, length: shape[0], width: spec.width, vocabulary: vocabularyOf(sample) })
    case 'attention': {
      const [length, width] = axes(place, 2, 'length × width')
      if (width % spec.heads !== 0)
        throw new ModelError(`layer ${name}: ${spec.heads} heads do not divide the width ${width}`)
      return attentionLayer({ ...spec, name, length, width, isCausal: spec.causal, hasShortcut: spec.shortcut })
    }
    case 'mlp': {
      const [length, width] = axes(place, 2, 'length × width')
      return perceptronLayer({ ...spec, name, length, width, hasShortcut: spec.shortcut })
    }
    case 'dropout':
      return dropout({ ...spec, name, input: shape })
    case 'convolution': {
      const [height, width] = axes(place, 3, 'height × width × channels')
      if (spec.padding === 'valid' && spec.size > Math.min(height, width)) throw tooLarge(name, spec.size, shape)
      return convolution({ ...spec, name, input: shape })
    }
    case 'max-pool': {
      const [height, width] = axes(place, 3, 'height × width × channels')
      if (spec.size > Math.min(height, width)) throw tooLarge(name, spec.size, shape)
      return maxPool({ ...spec, name, input: shape })
    }
    case 'flatten':
      return flatten({ name, input: shape })
    case 'mean-pool':
      axes(place, 2, 'length × width')
      return meanPool({ name, input: shape })
    default:
      return spec satisfies never
  }
}

function axes({ name, shape }: Place, rank: number, meaning: string): readonly number[] {
  if (shape.length === rank) return shape
  throw new ModelError(`layer ${name} needs samples of ${meaning}, not ${formatShape(shape)}`)
}

function tooLarge(name: string, size: number, shape: readonly number[]): ModelError {
  return new ModelError(`layer ${name}: ${size}×${size} is larger than what comes in, ${formatShape(shape)}`)
}

function vocabularyOf(sample: Sample): number {
  return sample.kind === 'tokens' ? sample.vocabulary : 0
}

function outputOf(target: Target, sample: Sample): readonly number[] {
  switch (target.kind) {
    case 'class':
      return [target.classes]
    case 'number':
      return [1]
    case 'next-token':
      if (sample.kind !== 'tokens') throw new ModelError('the next token can only be predicted of tokens')
      return [sample.shape[0], sample.vocabulary]
    default:
      return target satisfies never
  }
}

/** @throws ModelError if the shapes differ by more than the last axis */
function outputLayer(input: readonly number[], wanted: readonly number[]): Layer {
  if (!sameShape(input.slice(0, -1), wanted.slice(0, -1))) {
    const advice = wanted.length === 1 ? 'end in flatten or mean-pool' : 'keep a vector for each position'
    throw new ModelError(`the layers end in ${formatShape(input)}, wanted is ${formatShape(wanted)}: ${advice}`)
  }
  return dense({ name: 'output', input, units: wanted[wanted.length - 1], activation: 'none' })
}

function headFor(target: Target, wanted: readonly number[]): Head {
  return target.kind === 'number' ? squaredHead() : softmaxHead(wanted)
}

function checkNames(layers: readonly Layer[]): void {
  const names = layers.map(({ name }) => name)
  const twice = names.find((name, i) => names.indexOf(name) < i)
  if (twice !== undefined) throw new ModelError(`two layers have the name ${twice}`)
}

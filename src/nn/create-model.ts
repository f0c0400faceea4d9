/** Creates a model's layers and head from its description and the shape of its data. */
import { checkLayerOrders } from './layer-order.js'
import { dense } from './layers/dense.js'
import { createLayer } from './layers/registry.js'
import { frozenLayer } from './layers/wrappers.js'
import { softmaxHead, squaredHead } from './losses.js'
import type { ModelSpec } from './spec/model-spec.js'
import { layerTunings, type Target, type TuningSpec } from './spec/network-spec.js'
import { layersOf } from './spec/presets.js'
import { formatShape, type Head, type Layer, type Model, ModelError, type Sample, sameShape } from './types.js'

/**
 * The model ends in a dense layer `output` with one number per class (or token), or one number for regression. It is
 * not added to a list of layers whose output already has this shape.
 *
 * @param tuning which layers are trained @default all
 * @throws ModelError naming the layer whose input does not fit
 */
export function createModel(spec: ModelSpec, sample: Sample, target: Target, tuning?: TuningSpec): Model {
  const layers: Layer[] = []
  let input = sample.shape
  let isTokens = sample.kind === 'tokens'
  for (const [i, layerSpec] of layersOf(spec).entries()) {
    const name = layerSpec.name ?? `${layerSpec.kind}${i}`
    const layer = createLayer(layerSpec, { name, input, isTokens, sample, first: layers[0] })
    layers.push({ ...layer, from: layerSpec.from })
    input = layer.output
    isTokens = false
  }
  if (isTokens) throw new ModelError('a model on tokens must start with an embedding layer')
  const expected = outputShape(target, sample)
  const hasOutput = layers.at(-1)?.kind === 'token-output' || spec.model === 'layers'
  if (!hasOutput || !sameShape(input, expected)) layers.push(outputLayer(input, expected))
  checkNames(layers)
  checkLayerOrders(layers, expected)
  const name = spec.model === 'layers' ? spec.name : spec.model
  const head = headFor(target, expected)
  return { name, sample, layers: tuning === undefined ? layers : tuned(layers, tuning), head }
}

function tuned(layers: readonly Layer[], tuning: TuningSpec): Layer[] {
  const isEmpty = ({ weights, shares = [] }: Layer) => weights.length === 0 && shares.length === 0
  const tunings = layerTunings(
    layers.map(layer => ({ name: layer.name, kind: layer.kind, isEmpty: layer.weights.length === 0 })),
    tuning
  )
  return layers.map((layer, l) => {
    if (isEmpty(layer) || tunings[l] === 'whole') return layer
    const shares = layer.shares?.map(shared => ({ ...shared, isFrozen: tunings[shared.layer] !== 'whole' }))
    return frozenLayer({ ...layer, shares }, tunings[l] === 'adapters' ? tuning.lora : undefined)
  })
}

function outputShape(target: Target, sample: Sample): readonly number[] {
  switch (target.kind) {
    case 'class':
      return [target.classes]
    case 'number':
      return [1]
    case 'next-token':
      if (sample.kind !== 'tokens') throw new ModelError('the target next-token requires samples of tokens')
      return [sample.shape[0], sample.vocabulary]
    default:
      return target satisfies never
  }
}

/** @throws ModelError if the shapes differ in more than the last axis */
function outputLayer(input: readonly number[], expected: readonly number[]): Layer {
  if (!sameShape(input.slice(0, -1), expected.slice(0, -1))) {
    const advice = expected.length === 1 ? 'end in flatten or mean-pool' : 'keep one vector per position'
    throw new ModelError(`the layers end in shape ${formatShape(input)}, expected ${formatShape(expected)}: ${advice}`)
  }
  return dense({ name: 'output', input, units: expected[expected.length - 1], activation: 'none' })
}

function headFor(target: Target, input: readonly number[]): Head {
  if (target.kind !== 'number') return softmaxHead(input)
  const { scale } = target
  return scale === undefined ? squaredHead() : { ...squaredHead({ ...scale, mean: 0 }), mean: scale.mean }
}

function checkNames(layers: readonly Layer[]): void {
  const names = layers.map(({ name }) => name)
  const duplicate = names.find((name, i) => names.indexOf(name) < i)
  if (duplicate !== undefined) throw new ModelError(`two layers have the name ${duplicate}`)
}

/** The layers of a network as ONNX operators (opset 17), without what only training does. */

import { blockIndices } from '../blocks.js'
import { servingOrder } from '../layer-order.js'
import { sizeOf } from '../shape.js'
import { type Activation, isCustomLayer, type LayerSpec } from '../spec/layer-kinds.js'
import type { NetworkSpec } from '../spec/network-spec.js'
import { layersOf } from '../spec/presets.js'
import { type Model, ModelError } from '../types.js'
import { attentionNodes, paddingMask, rotaryAttentionNodes } from './attention.js'
import type { GraphBuilder, LayerNodes, WeightOf } from './graph-builder.js'
import { convolutionNodes, embeddingNodes, maxPoolNodes } from './inputs.js'

/**
 * @param blocks weights of the whole network
 * @param updates number of updates that made them
 * @param x sample, with the axis N first
 * @returns output of the last layer
 * @throws ModelError for a plug-in's layer
 */
export function networkNodes(
  graph: GraphBuilder,
  network: NetworkSpec,
  model: Model,
  blocks: readonly Float32Array[],
  updates: number,
  x: string
): string {
  const indices = blockIndices(model)
  const values = new Map<string, string>()
  const weightOf = (l: number, name: string): string => {
    const key = `${model.layers[l].name}.${name}`
    const known = values.get(key)
    if (known !== undefined) return known
    const { weights } = model.layers[l]
    const at = weights.findIndex(weight => weight.name === name)
    const from = weights.slice(0, at).reduce((sum, { shape }) => sum + sizeOf(shape), 0)
    const { shape } = weights[at]
    const numbers = blocks[indices[l] as number].subarray(from, from + sizeOf(shape))
    const value = graph.floats(numbers, shape, key)
    values.set(key, value)
    return value
  }
  const specs = layersOf(network.layers)
  const { sample } = network
  const padding =
    sample.kind === 'tokens' && sample.padding !== undefined && specs.some(hasMask)
      ? paddingMask(graph, x, sample.shape[0], sample.padding)
      : undefined
  return servingOrder(model, updates).reduce((y, l) => {
    const layer = model.layers[l]
    const [shared] = layer.shares ?? []
    const weight: WeightOf = name =>
      shared !== undefined
        ? weightOf(shared.layer, model.layers[shared.layer].weights[shared.weight].name)
        : weightOf(l, name)
    // The output layer that the model adds.
    const units = layer.output[layer.output.length - 1]
    const spec: LayerSpec = specs[l] ?? { kind: 'dense', units, activation: 'none' }
    return layerNodes({ graph, x: y, spec, layer, sample, weight, padding })
  }, x)
}

function hasMask(spec: LayerSpec): boolean {
  return !isCustomLayer(spec) && spec.kind === 'attention' && spec.mask === 'padding'
}

function layerNodes(given: LayerNodes): string {
  const { graph, x, spec, layer, weight, padding } = given
  if (isCustomLayer(spec)) {
    throw new ModelError(
      `layer ${layer.name} is of a plug-in (${spec.kind}), which ONNX does not have: export safetensors`
    )
  }
  const [length, width] = layer.input
  switch (spec.kind) {
    case 'dense':
      return affineNodes(graph, x, weight, '', spec.activation)
    case 'layer-norm':
    case 'rms-norm':
      return normNodes(graph, x, weight, '', spec.epsilon, spec.kind === 'rms-norm')
    case 'embedding':
      return embeddingNodes({ ...given, spec })
    case 'attention':
      return blockNodes({ ...given, spec }, false, input =>
        attentionNodes(
          graph,
          input,
          weight,
          { length, width, heads: spec.heads },
          spec.causal,
          spec.mask === undefined ? undefined : padding
        )
      )
    case 'rotary-attention': {
      const { heads, keyHeads = heads, theta } = spec
      return blockNodes({ ...given, spec }, true, input =>
        rotaryAttentionNodes(graph, input, weight, { length, width, heads, keyHeads, theta })
      )
    }
    case 'mlp':
      return blockNodes({ ...given, spec }, false, input =>
        affineNodes(graph, affineNodes(graph, input, weight, 'up.', spec.activation), weight, 'down.', 'none')
      )
    case 'gated-mlp':
      return blockNodes({ ...given, spec }, true, input => {
        const gate = graph.node('MatMul', [input, weight('gate.kernel')])
        const silu = graph.node('Mul', [gate, graph.node('Sigmoid', [gate])])
        const up = graph.node('MatMul', [input, weight('up.kernel')])
        return graph.node('MatMul', [graph.node('Mul', [silu, up]), weight('down.kernel')])
      })
    case 'dropout':
      return x
    case 'convolution':
      return activationNodes(graph, convolutionNodes({ ...given, spec }), spec.activation)
    case 'max-pool':
      return maxPoolNodes({ ...given, spec })
    case 'flatten':
      return graph.reshape(x, [-1, layer.output[0]])
    case 'mean-pool':
      return graph.node('ReduceMean', [x], { axes: [1], keepdims: 0 })
    case 'first-pool':
      return graph.node('Gather', [x, graph.integers([0], [])], { axis: 1 })
    case 'token-output':
      return graph.node('MatMul', [x, graph.node('Transpose', [weight('tokens')], { perm: [1, 0] })])
    default:
      throw new ModelError(`layers of kind ${layer.kind} cannot be written to ONNX yet: export safetensors`)
  }
}

type BlockSpec = Extract<LayerSpec, { readonly norm: string; readonly shortcut: boolean }>

/** Norm and residual connection around the core of a block. */
function blockNodes(
  { graph, x, spec, weight }: LayerNodes<BlockSpec>,
  isRms: boolean,
  core: (input: string) => string
): string {
  const norm = (input: string) => normNodes(graph, input, weight, 'norm.', spec.epsilon, isRms)
  const inner = core(spec.norm === 'before' ? norm(x) : x)
  const y = spec.shortcut ? graph.node('Add', [x, inner]) : inner
  return spec.norm === 'after' ? norm(y) : y
}

function affineNodes(graph: GraphBuilder, x: string, weight: WeightOf, prefix: string, activation: Activation): string {
  const product = graph.node('MatMul', [x, weight(`${prefix}kernel`)])
  return activationNodes(graph, graph.node('Add', [product, weight(`${prefix}bias`)]), activation)
}

function normNodes(
  graph: GraphBuilder,
  x: string,
  weight: WeightOf,
  prefix: string,
  epsilon: number,
  isRms: boolean
): string {
  const scale = weight(`${prefix}scale`)
  if (!isRms) {
    const offset = weight(`${prefix}offset`)
    return graph.node('LayerNormalization', [x, scale, offset], { axis: -1, epsilon: { float: epsilon } })
  }
  const square = graph.node('ReduceMean', [graph.node('Mul', [x, x])], { axes: [-1], keepdims: 1 })
  const root = graph.node('Sqrt', [graph.node('Add', [square, graph.float(epsilon)])])
  return graph.node('Mul', [graph.node('Div', [x, root]), scale])
}

function activationNodes(graph: GraphBuilder, z: string, activation: Activation): string {
  switch (activation) {
    case 'none':
      return z
    case 'relu':
      return graph.node('Relu', [z])
    case 'tanh':
      return graph.node('Tanh', [z])
    case 'gelu': {
      const cube = graph.node('Mul', [graph.node('Mul', [z, z]), z])
      const sum = graph.node('Add', [z, graph.node('Mul', [cube, graph.float(0.044715)])])
      return gated(graph, z, graph.node('Tanh', [graph.node('Mul', [sum, graph.float(Math.sqrt(2 / Math.PI))])]))
    }
    case 'gelu-exact':
      return gated(graph, z, graph.node('Erf', [graph.node('Mul', [z, graph.float(Math.SQRT1_2)])]))
    default:
      return activation satisfies never
  }
}

/** ½·z·(1 + gate). */
function gated(graph: GraphBuilder, z: string, gate: string): string {
  const half = graph.node('Mul', [z, graph.float(0.5)])
  return graph.node('Mul', [half, graph.node('Add', [gate, graph.float(1)])])
}

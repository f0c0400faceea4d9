/** The layers of a network as ONNX operators (opset 17), without what only training does. */
import { blockIndices } from '../blocks.js'
import { servingOrder } from '../layer-order.js'
import { type Activation, isCustomLayer, type LayerSpec } from '../spec/layer-kinds.js'
import type { NetworkSpec } from '../spec/network-spec.js'
import { layersOf } from '../spec/presets.js'
import { type Model, ModelError, sizeOf } from '../types.js'
import { FLOAT, type GraphBuilder, INT64, type LayerNodes, type WeightOf } from './graph.js'

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

/** Added to the score of a masked position, as in training. */
const MASKED_SCORE = -1e9

/** Self-attention as ONNX operators. Values: x [N, length, width]; heads [N, heads, length, width/heads]. */
export interface AttentionShape {
  readonly length: number
  readonly width: number
  readonly heads: number
}

/** @param padding mask of `paddingMask` @default no position is masked */
export function attentionNodes(
  graph: GraphBuilder,
  x: string,
  weight: WeightOf,
  { length, width, heads }: AttentionShape,
  isCausal: boolean,
  padding: string | undefined
): string {
  const products = graph.node('MatMul', [x, weight('qkv.kernel')])
  const qkv = graph.node('Add', [products, weight('qkv.bias')])
  const split = graph.nodes('Split', [qkv, graph.integers([width, width, width])], 3, { axis: 2 })
  const [q, k, v] = split.map(part => splitHeads(graph, part, heads, width / heads))
  const mixed = mix(graph, [q, k, v], { length, width, heads }, isCausal ? causalMask(graph, length) : padding)
  return graph.node('Add', [graph.node('MatMul', [mixed, weight('out.kernel')]), weight('out.bias')])
}

/** Causal attention with rotary positions and grouped queries. */
export function rotaryAttentionNodes(
  graph: GraphBuilder,
  x: string,
  weight: WeightOf,
  shape: AttentionShape & { readonly keyHeads: number; readonly theta: number }
): string {
  const { length, width, heads, keyHeads, theta } = shape
  const size = width / heads
  const project = (name: string, count: number) =>
    splitHeads(graph, graph.node('MatMul', [x, weight(`${name}.kernel`)]), count, size)
  const turn = rotation(graph, length, size, theta)
  const group = Array.from({ length: heads }, (_, head) => Math.floor((head * keyHeads) / heads))
  const repeated = (k: string) => graph.node('Gather', [k, graph.integers(group)], { axis: 1 })
  const q = turn(project('query', heads))
  const k = repeated(turn(project('key', keyHeads)))
  const v = repeated(project('value', keyHeads))
  return graph.node('MatMul', [mix(graph, [q, k, v], shape, causalMask(graph, length)), weight('out.kernel')])
}

/**
 * @param tokens [N, length]
 * @returns [N, 1, 1, length], added to the scores: padding after the last other token is masked, the first position never
 */
export function paddingMask(graph: GraphBuilder, tokens: string, length: number, padding: number): string {
  const isText = graph.node('Not', [graph.node('Equal', [tokens, graph.integers([padding], [])])])
  const positions = Array.from({ length }, (_, i) => i)
  const ends = graph.node('Mul', [
    graph.node('Cast', [isText], { to: 7 }),
    graph.integers(positions.map(position => position + 1))
  ])
  const end = graph.node('Max', [graph.node('ReduceMax', [ends], { axes: [1], keepdims: 1 }), graph.integers([1])])
  const visible = graph.node('Less', [graph.integers(positions, [1, length]), end])
  const mask = graph.node('Where', [visible, graph.float(0), graph.float(MASKED_SCORE)])
  return graph.reshape(mask, [-1, 1, 1, length])
}

function splitHeads(graph: GraphBuilder, x: string, heads: number, size: number): string {
  return graph.node('Transpose', [graph.reshape(x, [0, 0, heads, size])], { perm: [0, 2, 1, 3] })
}

/** Softmax(scale·Q·Kᵀ + mask)·V, heads merged. */
function mix(
  graph: GraphBuilder,
  [q, k, v]: readonly string[],
  { width, heads }: AttentionShape,
  mask: string | undefined
): string {
  const products = graph.node('MatMul', [q, graph.node('Transpose', [k], { perm: [0, 1, 3, 2] })])
  const scores = graph.node('Mul', [products, graph.float(1 / Math.sqrt(width / heads))])
  const masked = mask === undefined ? scores : graph.node('Add', [scores, mask])
  const mixed = graph.node('MatMul', [graph.node('Softmax', [masked], { axis: -1 }), v])
  return graph.reshape(graph.node('Transpose', [mixed], { perm: [0, 2, 1, 3] }), [0, 0, width])
}

function causalMask(graph: GraphBuilder, length: number): string {
  const mask = new Float32Array(length * length)
  for (let row = 0; row < length; row++) mask.fill(MASKED_SCORE, row * length + row + 1, (row + 1) * length)
  return graph.floats(mask, [length, length])
}

/** Rotates the pairs (i, i + size/2) of each vector by position·theta^(−2i/size). */
function rotation(graph: GraphBuilder, length: number, size: number, theta: number): (x: string) => string {
  const half = size / 2
  const table = (f: (angle: number) => number) =>
    graph.floats(
      Float32Array.from({ length: length * size }, (_, at) =>
        f(Math.floor(at / size) * theta ** (-((at % size) % half) / half))
      ),
      [length, size]
    )
  const [cos, sin] = [table(Math.cos), table(Math.sin)]
  return x => {
    const [low, high] = graph.nodes('Split', [x, graph.integers([half, half])], 2, { axis: 3 })
    const turned = graph.node('Concat', [graph.node('Neg', [high]), low], { axis: 3 })
    return graph.node('Add', [graph.node('Mul', [x, cos]), graph.node('Mul', [turned, sin])])
  }
}

/** Layers on token ids and on images as ONNX operators. Images are [N, height, width, channels], as in training. */
type Of<Kind extends string> = LayerNodes<Extract<LayerSpec, { readonly kind: Kind }>>

/** Token, position and segment vectors; a segment ends after its separator. */
export function embeddingNodes({ graph, x, layer, sample, weight }: Of<'embedding'>): string {
  const length = layer.input[0]
  const has = (name: string) => layer.weights.some(one => one.name === name)
  let y = graph.node('Gather', [weight('tokens'), x])
  if (has('positions')) {
    const positions = graph.integers(Array.from({ length }, (_, i) => i))
    y = graph.node('Add', [y, graph.node('Gather', [weight('positions'), positions])])
  }
  if (!has('segments')) return y
  const separator = sample.kind === 'tokens' ? (sample.separator ?? -1) : -1
  const isSeparator = graph.node('Equal', [x, graph.integers([separator], [])])
  const before = graph.node('CumSum', [graph.node('Cast', [isSeparator], { to: FLOAT }), graph.integers([1], [])], {
    exclusive: 1
  })
  const segments = graph.node('Cast', [graph.node('Greater', [before, graph.float(0)])], { to: INT64 })
  return graph.node('Add', [y, graph.node('Gather', [weight('segments'), segments])])
}

export function convolutionNodes({ graph, x, spec, layer, weight }: Of<'convolution'>): string {
  const { size, stride, padding } = spec
  const zeros = [0, 1].map(axis => {
    const needed = (layer.output[axis] - 1) * stride + size - layer.input[axis]
    return padding === 'valid' ? 0 : Math.max(0, needed)
  })
  const before = zeros.map(count => Math.floor(count / 2))
  const kernel = graph.node('Transpose', [weight('kernel')], { perm: [3, 2, 0, 1] })
  const y = graph.node('Conv', [channelsFirst(graph, x), kernel, weight('bias')], {
    strides: [stride, stride],
    pads: [...before, ...zeros.map((count, axis) => count - before[axis])]
  })
  return channelsLast(graph, y)
}

export function maxPoolNodes({ graph, x, spec: { size } }: Of<'max-pool'>): string {
  const y = graph.node('MaxPool', [channelsFirst(graph, x)], { kernel_shape: [size, size], strides: [size, size] })
  return channelsLast(graph, y)
}

function channelsFirst(graph: LayerNodes['graph'], x: string): string {
  return graph.node('Transpose', [x], { perm: [0, 3, 1, 2] })
}

function channelsLast(graph: LayerNodes['graph'], x: string): string {
  return graph.node('Transpose', [x], { perm: [0, 2, 3, 1] })
}

/** Layers on token ids and on images as ONNX operators. Images are [N, height, width, channels], as in training. */
import type { LayerSpec } from '../spec/layer-kinds.js'
import type { LayerNodes } from './graph-builder.js'
import { FLOAT, INT64 } from './messages.js'

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

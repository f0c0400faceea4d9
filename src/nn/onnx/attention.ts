/** Self-attention as ONNX operators. Values: x [N, length, width]; heads [N, heads, length, width/heads]. */
import type { GraphBuilder, WeightOf } from './graph-builder.js'

/** Added to the score of a masked position, as in training. */
const MASKED_SCORE = -1e9

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

/**
 * A predictor as an ONNX model: from raw numbers, or prepared features where their preparation needs a hash, to probabilities and
 * class names, or a number. The metadata is that of safetensors files.
 */

import type { SavedMoments } from '../data/index.js'
import type { Blocks, TargetScale } from '../learning/index.js'
import { DOUBLE, FLOAT, GraphBuilder, INT64, STRING } from '../nn/onnx/graph.js'
import { ModelError } from '../nn/types.js'
import { classNamesOf } from './learning-parts.js'
import { type LearningSpec, targetScaleOf } from './learning-spec.js'
import { type ColumnEntry, columnsOf, predictorMetadata, predictorTensors } from './predictor-metadata.js'

/** Features of a row of a linear model; above it, the input of the graph is sparse. */
const MAX_DENSE = 4096
/** Limit of a scaled value, in standard deviations. */
const MAX_DEVIATIONS = 10

export interface OnnxSource {
  readonly spec: LearningSpec
  /** Weights of the whole model. */
  readonly blocks: Blocks
  /** Number of updates that made them. */
  readonly updates: number
  /** By which numbers are standardised as they come. */
  readonly moments: SavedMoments | undefined
}

/** @throws ModelError for plug-ins, and above 2 GB */
export async function onnxModel(source: OnnxSource, metadata: Readonly<Record<string, string>>): Promise<Uint8Array> {
  const { spec, blocks, moments } = source
  const graph = new GraphBuilder()
  const names = spec.network?.text?.classNames ?? classNamesOf(spec, blocks)
  if (spec.network === undefined) await linearNodes(graph, source, names)
  else await networkOutputs(graph, source, names)
  return graph.finish('admb', { ...metadata, ...predictorMetadata(spec, moments, names) })
}

async function networkOutputs(graph: GraphBuilder, source: OnnxSource, names: readonly string[] | undefined) {
  const { spec, blocks, updates } = source
  const { network } = spec
  if (network === undefined) return
  const { sample, target } = network
  const [{ networkModel }, { networkNodes }] = await Promise.all([
    import('../l2l/index.js'),
    import('../nn/onnx/layers.js')
  ])
  const x =
    sample.kind === 'tokens'
      ? graph.input('tokens', INT64, ['N', ...sample.shape])
      : graph.reshape(denseRow(graph, source), [-1, ...sample.shape])
  const y = networkNodes(graph, network, networkModel(network), blocks, updates, x)
  switch (target.kind) {
    case 'number':
      return numberOutput(graph, graph.reshape(y, [-1]), target.scale)
    case 'class':
      return classOutputs(graph, y, graph.node('Softmax', [y], { axis: -1 }), target.classes, names)
    case 'next-token': {
      if (sample.kind !== 'tokens') return
      const shape = ['N', ...sample.shape, sample.vocabulary]
      graph.output('scores', y, FLOAT, shape)
      return graph.output('probabilities', graph.node('Softmax', [y], { axis: -1 }), FLOAT, shape)
    }
    default:
      return target satisfies never
  }
}

async function linearNodes(graph: GraphBuilder, source: OnnxSource, names: readonly string[] | undefined) {
  const { spec, blocks } = source
  const [{ shape, read }] = await predictorTensors(spec, blocks)
  const [dimension, outputs = 1] = shape
  const weights = graph.floats(read(), [dimension, outputs], 'weights')
  const isSparse = spec.features.hashBits !== undefined || dimension > MAX_DENSE || !(numbersOnly(source) ?? true)
  const scores = isSparse
    ? sparseScores(graph, weights, spec.features.constant)
    : graph.node('MatMul', [denseRow(graph, source), weights])
  switch (spec.model) {
    case 'linear':
      return numberOutput(graph, graph.reshape(scores, [-1]), targetScaleOf(spec))
    case 'softmax':
      return classOutputs(graph, scores, graph.node('Softmax', [scores], { axis: -1 }), outputs, names)
    case 'logistic':
      return classOutputs(graph, scores, bothOf(graph, graph.node('Sigmoid', [scores])), 2, names)
    case 'hinge':
      return classOutputs(graph, scores, bothOf(graph, hingeProbability(graph, scores)), 2, names)
    case 'external':
      throw new ModelError('a program has this model: export safetensors, or export it in the program')
    default:
      throw new ModelError(`the loss ${spec.model} is of a plug-in, which ONNX does not have: export safetensors`)
  }
}

/** The columns, if all of them are numbers; false if some are not; undefined without columns. */
function numbersOnly({ spec, moments }: OnnxSource): readonly ColumnEntry[] | false | undefined {
  const columns = columnsOf(spec.features, moments)
  if (columns === undefined) return undefined
  return columns.every(({ kind }) => kind === 'number') && columns
}

/** The features of a row, the constant one included: [N, dimension]. */
function denseRow(graph: GraphBuilder, source: OnnxSource): string {
  const { dimension, features } = source.spec
  const columns = numbersOnly(source)
  const first = features.constant ? 1 : 0
  if (!columns) {
    const x = graph.input('features', FLOAT, ['N', dimension - first])
    if (first === 0) return x
    const pads = graph.integers([0, 1, 0, 0])
    return graph.node('Pad', [x, pads, graph.float(1)])
  }
  const x = graph.input('features', FLOAT, ['N', columns.length])
  const missing = graph.node('IsNaN', [x])
  const scaled = graph.node('Where', [missing, graph.float(0), standardised(graph, x, columns)])
  const parts = graph.node('Concat', [scaled, graph.node('Cast', [missing], { to: FLOAT })], { axis: 1 })
  // A constant and a zero follow the numbers and their indicators.
  const constant = graph.node('Pad', [parts, graph.integers([0, 0, 0, 1]), graph.float(1)])
  const all = graph.node('Pad', [constant, graph.integers([0, 0, 0, 1]), graph.float(0)])
  const from = new Array<number>(dimension).fill(2 * columns.length + 1)
  if (first === 1) from[0] = 2 * columns.length
  for (const [c, { feature, indicator }] of columns.entries()) {
    if (feature !== undefined) from[feature] = c
    if (indicator !== undefined) from[indicator] = columns.length + c
  }
  return graph.node('Gather', [all, graph.integers(from)], { axis: 1 })
}

/** In double precision, because a column's mean may be large beside its deviation. */
function standardised(graph: GraphBuilder, x: string, columns: readonly ColumnEntry[]): string {
  if (columns.every(({ mean }) => mean === undefined)) return x
  const row = [1, columns.length]
  const means = columns.map(({ mean = 0 }) => mean)
  const factors = columns.map(({ deviation = 1 }) => 1 / deviation)
  const limits = columns.map(({ mean }) => (mean === undefined ? Number.MAX_VALUE : MAX_DEVIATIONS))
  const centred = graph.node('Sub', [graph.node('Cast', [x], { to: DOUBLE }), graph.doubles(means, row)])
  const scaled = graph.node('Mul', [centred, graph.doubles(factors, row)])
  const above = graph.node('Max', [
    scaled,
    graph.doubles(
      limits.map(limit => -limit),
      row
    )
  ])
  return graph.node('Cast', [graph.node('Min', [above, graph.doubles(limits, row)])], { to: FLOAT })
}

/** Rows as indices and values of their features; padded with values of 0. */
function sparseScores(graph: GraphBuilder, weights: string, hasConstant: boolean): string {
  const indices = graph.input('indices', INT64, ['N', 'K'])
  const values = graph.input('values', FLOAT, ['N', 'K'])
  const products = graph.node('Mul', [
    graph.node('Gather', [weights, indices]),
    graph.node('Unsqueeze', [values, graph.integers([2])])
  ])
  const sum = graph.node('ReduceSum', [products, graph.integers([1])], { keepdims: 0 })
  return hasConstant ? graph.node('Add', [sum, graph.node('Gather', [weights, graph.integers([0])])]) : sum
}

/** Probabilities of classes 0 and 1. */
function bothOf(graph: GraphBuilder, p: string): string {
  return graph.node('Concat', [graph.node('Sub', [graph.float(1), p]), p], { axis: 1 })
}

/** 1/(2 − |s|) for s in [0, 1], its mirror image below 0, and 0 or 1 beyond. */
function hingeProbability(graph: GraphBuilder, scores: string): string {
  const size = graph.node('Min', [graph.node('Abs', [scores]), graph.float(1)])
  const p = graph.node('Reciprocal', [graph.node('Sub', [graph.float(2), size])])
  const isPositive = graph.node('GreaterOrEqual', [scores, graph.float(0)])
  return graph.node('Where', [isPositive, p, graph.node('Sub', [graph.float(1), p])])
}

function numberOutput(graph: GraphBuilder, y: string, scale: TargetScale | undefined): void {
  const { mean = 0, deviation = 1 } = scale ?? {}
  const scaled = graph.node('Mul', [y, graph.float(deviation)])
  graph.output('prediction', graph.node('Add', [scaled, graph.float(mean)]), FLOAT, ['N'])
}

function classOutputs(
  graph: GraphBuilder,
  scores: string,
  probabilities: string,
  classes: number,
  names: readonly string[] = []
): void {
  const texts = Array.from({ length: classes }, (_, number) => names[number] ?? String(number))
  const best = graph.node('ArgMax', [probabilities], { axis: 1, keepdims: 0 })
  graph.output('scores', scores, FLOAT, ['N', 'C'])
  graph.output('probabilities', probabilities, FLOAT, ['N', classes])
  graph.output('label', graph.node('Gather', [graph.strings(texts), best]), STRING, ['N'])
}

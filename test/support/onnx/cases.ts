/** A case for each model: an exported file with inputs, and the outputs of admb for them. */
import * as tf from '#tfjs'
import { createLearner } from '../../../src/learning/index.js'
import { blockIndices, initialBlocks } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { forkSeed, uniforms } from '../../../src/nn/random.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec, Target } from '../../../src/nn/spec/network-spec.js'
import type { Sample } from '../../../src/nn/types.js'
import type { LearningSpec, LinearSpec } from '../../../src/task/learning-spec.js'
import { onnxModel } from '../../../src/task/onnx.js'
import { tensorsOf } from '../l2l/models.js'
import { sizeOf, type Value } from './values.js'

export interface OnnxCase {
  readonly name: string
  readonly file: Uint8Array
  readonly inputs: Readonly<Record<string, Value>>
  readonly outputs: Readonly<Record<string, Value>>
}

const images: Sample = { kind: 'features', shape: [8, 8, 1] }
const text: Sample = { kind: 'tokens', shape: [6], vocabulary: 7 }
const pairs: Sample = { ...text, padding: 0, separator: 1 }
const classes: Target = { kind: 'class', classes: 3 }
const next: Target = { kind: 'next-token' }
const small = { width: 8, layers: 2, heads: 2 }

const NETWORKS: Readonly<Record<string, readonly [values: object, sample: Sample, target: Target]>> = {
  mlp: [{ model: 'mlp', hidden: [16, 8], activation: 'tanh', dropout: 0.1 }, images, classes],
  'mlp for numbers': [{ model: 'mlp', hidden: [8] }, images, { kind: 'number', scale: { mean: 3, deviation: 2 } }],
  convnet: [{ model: 'convnet', filters: [3, 4], size: 3, hidden: 8 }, images, classes],
  transformer: [{ model: 'transformer', ...small }, text, classes],
  'transformer, norm after': [{ model: 'transformer', ...small, norm: 'after' }, text, classes],
  gpt: [{ model: 'gpt', ...small }, text, next],
  bert: [{ model: 'bert', ...small, positions: 9 }, pairs, classes],
  gpt2: [{ model: 'gpt2', ...small, positions: 9 }, text, next],
  llama: [{ model: 'llama', ...small, heads: 4, width: 16, keyHeads: 2 }, text, next],
  'llama, tied': [{ model: 'llama', ...small, tied: true }, text, next],
  'strided convolution': [
    {
      layers: [
        { kind: 'convolution', filters: 2, size: 3, stride: 2, padding: 'same', activation: 'gelu' },
        { kind: 'convolution', filters: 2, size: 2, stride: 1, padding: 'valid', activation: 'none' },
        { kind: 'max-pool', size: 2 },
        { kind: 'flatten' },
        { kind: 'layer-norm' }
      ]
    },
    images,
    classes
  ]
}

const MODELS = ['linear', 'logistic', 'hinge', 'softmax'] as const

export function onnxCases(seed: number, rows = 3): Promise<OnnxCase[]> {
  return Promise.all([
    ...Object.keys(NETWORKS).map(name => networkCase(name, seed, rows)),
    ...MODELS.flatMap(model => [linearCase(model, seed, rows, true), linearCase(model, seed, rows, false)])
  ])
}

const common = { rule: { name: 'adagrad' }, averaging: { name: 'tail' }, batch: 1 } as unknown as LearningSpec

async function networkCase(name: string, seed: number, rows: number): Promise<OnnxCase> {
  const [values, sample, target] = NETWORKS[name]
  const network: NetworkSpec = { layers: parseModel(values, name), sample, target }
  const model = createModel(network.layers, sample, target)
  const random = uniforms(forkSeed(seed, 1))
  // Biases, offsets and scales are not 0 and 1.
  const blocks = initialBlocks(model, seed).map(block => block.map(weight => weight + 0.4 * (random() - 0.5)))
  const dimension = sizeOf(sample.shape)
  const features = { constant: false, scale: 'none', classNames: target.kind === 'class' ? ['x', 'y', 'z'] : undefined }
  const spec = { ...common, model: 'network', network, dimension, features } as LearningSpec
  const isText = sample.kind === 'tokens'
  const data = Array.from({ length: rows * dimension }, () =>
    isText ? Math.floor(random() * sample.vocabulary) : Math.fround(random() - 0.5)
  )
  // The first row has padding at its end.
  if (isText) data.fill(0, 4, 6)
  const indices = blockIndices(model)
  const [y, p] = tf.tidy(() => {
    const x = tf.tensor(data, [rows, ...sample.shape], isText ? 'int32' : 'float32')
    const own = model.layers.map((layer, l) => tensorsOf(layer, blocks[indices[l] ?? -1]))
    const lengths =
      isText && sample.padding !== undefined ? lengthsOf(data, rows, dimension, sample.padding) : undefined
    const y = model.layers.reduce<tf.Tensor>((x, layer, l) => {
      const shared = (layer.shares ?? []).map(({ layer: from, weight }) => own[from][weight])
      return layer.forward(x, [...own[l], ...shared], { training: false, seed: 0, lengths })
    }, x)
    return [y, model.head.predict(y)].map(({ shape, dataSync }, i, all) => ({
      shape: [...shape],
      data: [...(dataSync.call(all[i]) as Float32Array)]
    }))
  })
  const inputs = { [isText ? 'tokens' : 'features']: { shape: [rows, dimension], data } }
  // The mean of a number is added outside of the head.
  const predicted = { ...p, data: p.data.map(value => value + (model.head.mean ?? 0)) }
  const outputs: Readonly<Record<string, Value>> =
    target.kind === 'number' ? { prediction: predicted } : { scores: y, probabilities: p }
  const file = await onnxModel({ spec, blocks, updates: 1, moments: undefined }, {})
  return { name, file, inputs, outputs }
}

function lengthsOf(data: readonly number[], rows: number, width: number, padding: number): Int32Array {
  return Int32Array.from({ length: rows }, (_, row) =>
    Math.max(1, data.slice(row * width, (row + 1) * width).findLastIndex(token => token !== padding) + 1)
  )
}

/** @param isDense whether features are not hashed */
async function linearCase(
  model: (typeof MODELS)[number],
  seed: number,
  rows: number,
  isDense: boolean
): Promise<OnnxCase> {
  const random = uniforms(forkSeed(seed, 2))
  const [dimension, count] = [9, 8]
  const learner = createLearner({ model, dimension, ...(model === 'softmax' && { classes: 3 }) })
  const blocks = learner.initial().map(block => block.map(() => 2 * random() - 1))
  const names = model === 'linear' ? undefined : ['x', 'y', 'z'].slice(0, model === 'softmax' ? 3 : 2)
  const features = { constant: true, scale: 'none', classNames: names, ...(!isDense && { hashBits: 3 }) }
  const spec = { ...common, model, dimension, classes: model === 'softmax' ? 3 : undefined, features } as LinearSpec
  const values = Array.from({ length: rows * count }, () => Math.fround(random() - 0.5))
  const indices = values.map((_, i) => (isDense ? (i % count) + 1 : 1 + Math.floor(random() * count)))
  const each = Array.from({ length: rows }, (_, row) => [row * count, (row + 1) * count] as const)
  const predictions = learner.predict(
    blocks,
    {
      indices: Int32Array.from(each.flatMap(([from, to]) => [0, ...indices.slice(from, to)])),
      values: Float32Array.from(each.flatMap(([from, to]) => [1, ...values.slice(from, to)])),
      offsets: Int32Array.from({ length: rows + 1 }, (_, row) => row * (count + 1)),
      labels: new Float32Array(rows),
      size: rows
    },
    0,
    rows
  )
  const shape = [rows, count]
  const data = predictions.flatMap(({ scores }) => [...scores])
  const outputs: Readonly<Record<string, Value>> =
    model === 'linear'
      ? { prediction: { shape: [rows], data } }
      : {
          probabilities: { shape: [rows, data.length / rows], data },
          label: { shape: [rows], data: predictions.map(({ label }) => names?.[label]) as unknown as number[] }
        }
  const inputs: Readonly<Record<string, Value>> = isDense
    ? { features: { shape, data: values } }
    : { indices: { shape, data: indices }, values: { shape, data: values } }
  const file = await onnxModel({ spec, blocks, updates: 1, moments: undefined }, {})
  return { name: `${model}, ${isDense ? 'dense' : 'sparse'}`, file, inputs, outputs }
}

/** Models from descriptions: shapes, names, error messages; and training on a small sample. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ZodType } from 'zod'
import * as tf from '#tfjs'
import { initialBlocks, layerCosts, layoutOf } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { randomBits } from '../../../src/nn/random.js'
import { COMMON_OPTIONS, LAYER_KINDS, type LayerKindEntry } from '../../../src/nn/spec/layer-kinds.js'
import { loadModel, parseModel } from '../../../src/nn/spec/model-spec.js'
import type { Target } from '../../../src/nn/spec/network-spec.js'
import type { Model, Sample } from '../../../src/nn/types.js'
import { BACKENDS, useBackend } from '../../support/l2l/layers.js'
import { stepOf } from '../../support/l2l/models.js'

const digits: Sample = { kind: 'features', shape: [8, 8, 1] }
const text: Sample = { kind: 'tokens', shape: [6], vocabulary: 5 }
const pairs: Sample = { ...text, padding: 0, separator: 1 }
const fourClasses: Target = { kind: 'class', classes: 4 }
const nextToken: Target = { kind: 'next-token' }

const models: Record<string, { values: object; sample: Sample; target: Target }> = {
  mlp: { values: { model: 'mlp', hidden: [16, 8], dropout: 0.1 }, sample: digits, target: fourClasses },
  'mlp for numbers': { values: { model: 'mlp', hidden: [8] }, sample: digits, target: { kind: 'number' } },
  convnet: { values: { model: 'convnet', filters: [3, 4], size: 3, hidden: 8 }, sample: digits, target: fourClasses },
  transformer: {
    values: { model: 'transformer', width: 8, layers: 2, heads: 2, dropout: 0.1 },
    sample: text,
    target: fourClasses
  },
  'transformer as BERT': {
    values: { model: 'transformer', width: 8, layers: 1, heads: 2, norm: 'after' },
    sample: text,
    target: fourClasses
  },
  bert: { values: { model: 'bert', width: 8, layers: 1, heads: 2 }, sample: pairs, target: fourClasses },
  gpt2: { values: { model: 'gpt2', width: 8, layers: 2, heads: 2 }, sample: text, target: nextToken },
  llama: {
    values: { model: 'llama', width: 8, layers: 2, heads: 4, keyHeads: 2 },
    sample: text,
    target: nextToken
  },
  gpt: { values: { model: 'gpt', width: 8, layers: 2, heads: 2 }, sample: text, target: nextToken },
  'a list of layers': {
    values: {
      layers: [
        { kind: 'convolution', filters: 2, size: 3, stride: 2, padding: 'valid', activation: 'gelu' },
        { kind: 'flatten' },
        { kind: 'layer-norm' },
        { kind: 'dense', units: 4 }
      ]
    },
    sample: digits,
    target: fourClasses
  }
}

describe('models', () => {
  it('have help texts for all layer kinds and options', () => {
    for (const [kind, { help, options }] of Object.entries<LayerKindEntry>(LAYER_KINDS)) {
      assert.ok(help, kind)
      for (const [option, schema] of Object.entries({ ...COMMON_OPTIONS, ...options })) {
        assert.ok((schema as ZodType).description, `${kind}.${option}`)
      }
    }
  })

  for (const backend of BACKENDS) {
    for (const [name, { values, sample, target }] of Object.entries(models)) {
      it(`${name} fits twelve samples on ${backend}`, async () => {
        await useBackend(backend)
        const model = createModel(parseModel(values, name), sample, target)
        const before = tf.memory().numTensors
        const { first, last } = learn(model, target, 25)
        assert.ok(last < 0.8 * first, `loss ${first} before, ${last} after`)
        assert.equal(tf.memory().numTensors, before)
      })
    }
  }

  it('have equal initial weights only for equal seeds', () => {
    const model = createModel(parseModel({ model: 'gpt', width: 8, layers: 2, heads: 2 }, 'gpt'), text, nextToken)
    assert.deepEqual(initialBlocks(model, 7), initialBlocks(model, 7))
    assert.notDeepEqual(initialBlocks(model, 7), initialBlocks(model, 8))
    const [, first, , second] = initialBlocks(model, 7)
    assert.notDeepEqual(first, second)
  })

  it('have one block per layer with weights, and costs for each layer', () => {
    const model = createModel(
      parseModel({ model: 'convnet', filters: [2], size: 3, hidden: 5 }, 'c'),
      digits,
      fourClasses
    )
    assert.deepEqual(layoutOf(model).blocks, [
      { name: 'convolution0', kind: 'convolution', length: 9 * 2 + 2, vectors: [[18, 20]] },
      { name: 'hidden', kind: 'dense', length: 4 * 4 * 2 * 5 + 5, vectors: [[160, 165]] },
      { name: 'output', kind: 'dense', length: 5 * 4 + 4, vectors: [[20, 24]] }
    ])
    assert.deepEqual(layerCosts(model)[0], {
      name: 'convolution0',
      kind: 'convolution',
      parameters: 20,
      weightBytes: 80,
      gradientBytes: 80,
      outputBytes: 8 * 8 * 2 * 4,
      activationBytes: 8 * 8 * 2 * 4,
      macs: 8 * 8 * 2 * 9
    })
  })

  const invalidSpecs: [name: string, values: unknown, message: RegExp][] = [
    ['no mapping', 'mlp', /^m must hold key: value lines/],
    [
      'an unknown model',
      { model: 'gtp' },
      /^m: model: expected one of mlp, convnet, transformer, gpt, bert, gpt2, llama, layers.*"gtp"/
    ],
    ['an unknown option', { model: 'mlp', hiden: [3] }, /^m: .*hiden/],
    [
      'an unknown layer',
      { layers: [{ kind: 'flatten' }, { kind: 'dens' }] },
      /^m: layers\.1\.kind: expected one of dense/
    ],
    ['a wrong number', { layers: [{ kind: 'dense', units: 0 }] }, /^m: layers\.0\.units: .*\(given: 0\)/]
  ]
  for (const [name, values, message] of invalidSpecs) {
    it(`reject ${name} with its path`, () => {
      assert.throws(() => parseModel(values, 'm'), { name: 'ModelError', message })
    })
  }

  const mismatches: [name: string, layers: object[], sample: Sample, message: RegExp][] = [
    ['tokens without embedding', [{ kind: 'dense', units: 3 }], text, /dense0 takes numbers.*embedding layer first/],
    ['numbers to an embedding', [{ kind: 'embedding', width: 3 }], digits, /embedding0 takes tokens/],
    [
      'heads that do not divide',
      [
        { kind: 'embedding', width: 9 },
        { kind: 'attention', heads: 2 }
      ],
      text,
      /2 heads.* 9/
    ],
    ['an image as a sequence', [{ kind: 'mean-pool' }], digits, /mean-pool0 takes .* got 8×8×1/],
    [
      'an output of another shape',
      [{ kind: 'embedding', width: 4 }],
      text,
      /end in shape 6×4, expected 4: .*mean-pool/
    ],
    ['a pool larger than the image', [{ kind: 'max-pool', size: 9 }], digits, /9×9 is larger.*8×8×1/],
    [
      'the same name twice',
      [
        { kind: 'flatten', name: 'a' },
        { kind: 'dropout', rate: 0.5, name: 'a' }
      ],
      digits,
      /name a$/
    ]
  ]
  for (const [name, layers, sample, message] of mismatches) {
    it(`reject ${name}`, () => {
      assert.throws(() => createModel(parseModel({ layers }, 'm'), sample, fourClasses), {
        name: 'ModelError',
        message
      })
    })
  }

  it('are loaded from YAML and JSON files', () => {
    const folder = mkdtempSync(join(tmpdir(), 'models-'))
    try {
      const yaml = join(folder, 'm.yaml')
      writeFileSync(yaml, 'layers:\n  - {kind: flatten}\n  - {kind: dense, units: 3, activation: tanh}\n')
      const json = join(folder, 'm.json')
      writeFileSync(json, '{"model": "mlp", "hidden": [3]}')
      assert.equal(loadModel(yaml).model, 'layers')
      assert.equal(loadModel(json).model, 'mlp')
      assert.throws(
        () => loadModel(join(folder, 'none')),
        /^ModelError: cannot read .*none \(ENOENT\); expected a YAML or JSON file or one of mlp/
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

/** Trains on twelve random samples. @returns the mean losses of the first and the last step */
function learn(model: Model, target: Target, steps: number): { first: number; last: number } {
  const samples = 12
  let counter = 0
  const below = (limit: number) => randomBits(5, counter++) % limit
  const shape = [samples, ...model.sample.shape]
  const size = shape.reduce((a, b) => a * b)
  const { sample } = model
  const x = tf.tensor(
    Array.from({ length: size }, () => (sample.kind === 'tokens' ? below(sample.vocabulary) : below(1000) / 500 - 1)),
    shape,
    sample.kind === 'tokens' ? 'int32' : 'float32'
  )
  // Each position predicts its own token.
  const targets =
    target.kind === 'next-token'
      ? tf.clone(x)
      : tf.tensor1d(
          Array.from({ length: samples }, () => below(4)),
          target.kind === 'class' ? 'int32' : 'float32'
        )
  const blocks = initialBlocks(model, 3)
  const squares = blocks.map(block => new Float32Array(block.length))
  const losses: number[] = []
  for (let step = 0; step < steps; step++) {
    const { loss, gradients } = stepOf(model, blocks, x, targets)
    losses.push(loss / samples)
    blocks.forEach((block, i) => {
      gradients[i].forEach((gradient, j) => {
        const mean = gradient / samples
        squares[i][j] = 0.9 * squares[i][j] + 0.1 * mean * mean
        block[j] -= (0.02 * mean) / (Math.sqrt(squares[i][j]) + 1e-3)
      })
    })
  }
  tf.dispose([x, targets])
  return { first: losses[0], last: losses[steps - 1] }
}

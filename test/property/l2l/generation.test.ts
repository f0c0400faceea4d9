/** Generation of text: cached keys and values, and how tokens are drawn. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { BlockStore } from '../../../src/l2l/executor/types.js'
import { drawToken, Generation } from '../../../src/l2l/generation.js'
import { initialBlocks } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { uniforms } from '../../../src/nn/random.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { Model } from '../../../src/nn/types.js'
import { initialWeights, openCheckpoint } from '../../../src/nn/weights/checkpoint.js'
import { referenceOf } from '../../support/l2l/checkpoints.js'
import { BACKENDS, useBackend } from '../../support/l2l/layers.js'

const LENGTH = 7
const VOCABULARY = 11

function modelOf(name: string): Model {
  const reversible = { kind: 'reversible', layers: 2, heads: 2, inner: 8, causal: true }
  const spec =
    name === 'reversible'
      ? parseModel({ layers: [{ kind: 'embedding', width: 8 }, reversible, { kind: 'layer-norm' }] }, name)
      : parseModel({ model: name, width: 8, layers: 2, heads: 2 }, name)
  return createModel(spec, { kind: 'tokens', shape: [LENGTH], vocabulary: VOCABULARY }, { kind: 'next-token' })
}

/** Logits of the token after each position of a row, without a cache. */
function allLogits(model: Model, blocks: readonly Float32Array[], tokens: readonly number[]): Float32Array {
  const head = { ...model.head, predict: (x: tf.Tensor) => tf.clone(x) }
  const executor = new Executor({ ...model, head }, {})
  const rows = new DenseRows(model)
  const row = [...tokens, 0]
  rows.append(
    {
      size: 1,
      labels: new Float32Array(1),
      offsets: Int32Array.of(0, row.length),
      indices: Int32Array.from(row.keys()),
      values: Float32Array.from(row)
    },
    0
  )
  return executor.predict(new BlockStore(model, blocks, []), rows)
}

describe('generation', () => {
  for (const backend of BACKENDS) {
    describe(`on ${backend}`, () => {
      before(() => useBackend(backend))

      for (const name of ['gpt2', 'gpt', 'llama', 'reversible']) {
        it(`${name}: a cache gives the logits of the whole text, however it is divided`, () => {
          const model = modelOf(name)
          const blocks = initialBlocks(model, 3).map(block => block.map(weight => 4 * weight))
          const tokens = fc.array(fc.nat(VOCABULARY - 1), { minLength: LENGTH, maxLength: LENGTH })
          const before = tf.memory().numTensors
          fc.assert(
            fc.property(tokens, fc.subarray([1, 2, 3, 4, 5, 6]), (row, cuts) => {
              const whole = allLogits(model, blocks, row)
              const generation = new Generation(model, blocks)
              const ends = [...cuts, LENGTH]
              for (const [i, end] of ends.entries()) {
                const logits = generation.append(row.slice(ends[i - 1] ?? 0, end))
                for (const [token, logit] of logits.entries()) {
                  const expected = whole[(end - 1) * VOCABULARY + token]
                  // Rounding of float32 numbers grows with them.
                  assert.ok(
                    Math.abs(logit - expected) < 1e-4 * Math.max(1, Math.abs(expected)),
                    `${logit}, ${expected}`
                  )
                }
              }
              generation.close()
            }),
            { numRuns: 10 }
          )
          assert.equal(tf.memory().numTensors, before)
        })
      }

      for (const name of ['gpt2', 'llama', 'llama-tied'])
        it(`${name} takes the tokens that transformers takes`, () => {
          const { folder, greedy = [] } = referenceOf(name)
          const checkpoint = openCheckpoint(folder)
          const sample = { kind: 'tokens', shape: [24], vocabulary: checkpoint.foreign?.vocabulary as number } as const
          const model = createModel(checkpoint.layers, sample, { kind: 'next-token' })
          const generation = new Generation(model, [...initialWeights(model, checkpoint, 1).blocks()])
          const made = [...generation.tokens(greedy.slice(0, 4), greedy.length - 4, { temperature: 0 })]
          assert.deepEqual(made, greedy.slice(4))
          generation.close()
        })
    })
  }

  it('ends when the model has no further positions', () => {
    const model = modelOf('gpt2')
    const generation = new Generation(model, initialBlocks(model, 3))
    // The last token needs no position.
    assert.equal([...generation.tokens([1, 2, 3], 99)].length, LENGTH - 3 + 1)
    generation.close()
    const other = new Generation(model, initialBlocks(model, 3))
    assert.throws(() => [...other.tokens([], 1)], { name: 'OptionError', message: /no tokens/ })
    assert.throws(() => [...other.tokens(Array(8).fill(1), 1)], { message: /8 tokens, and the model 7 positions/ })
    other.close()
  })

  it('a model that does not predict the next token is refused', () => {
    const spec = parseModel({ model: 'bert', width: 8, layers: 1, heads: 2 }, 'bert')
    const model = createModel(spec, { kind: 'tokens', shape: [3], vocabulary: 5 }, { kind: 'class', classes: 2 })
    assert.throws(() => new Generation(model, []), { message: /bert does not generate text/ })
  })

  describe('drawn tokens', () => {
    const logits = Float32Array.of(0, 2, 1, 2 + Math.log(2), -1)
    const share = (sampling: object) => {
      const random = uniforms(5)
      const counts = new Float64Array(logits.length)
      for (let i = 0; i < 4000; i++) counts[drawToken(logits, sampling, random)] += 1 / 4000
      return [...counts]
    }
    const near = (shares: readonly number[], expected: readonly number[]) =>
      shares.forEach((value, token) => {
        assert.ok(Math.abs(value - expected[token]) < 0.03, `${shares}`)
      })
    const softmax = (values: readonly number[]) => {
      const powers = values.map(Math.exp)
      return powers.map(power => power / powers.reduce((a, b) => a + b))
    }

    it('have the probabilities of the model', () => near(share({}), softmax([...logits])))

    it('are more or less certain by the temperature', () => {
      near(share({ temperature: 0.5 }), softmax(Array.from(logits, logit => 2 * logit)))
      assert.deepEqual(share({ temperature: 0 }).map(Math.round), [0, 0, 0, 1, 0])
    })

    it('are of the most probable ones', () => {
      near(share({ topK: 2 }), [0, 1 / 3, 0, 2 / 3, 0])
      near(share({ topP: 0.6 }), [0, 1 / 3, 0, 2 / 3, 0])
      assert.deepEqual(share({ topP: 0.01 }).map(Math.round), [0, 0, 0, 1, 0])
    })
  })
})

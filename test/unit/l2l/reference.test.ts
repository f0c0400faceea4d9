/** BERT and GPT-2 compared with `transformers` and `torch`: rows, logits, gradients, and three steps of AdamW. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import * as tf from '#tfjs'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { INITIAL_SEED } from '../../../src/l2l/network-learner.js'
import { BlockStore } from '../../../src/l2l/parameter-store.js'
import { L2LEngine } from '../../../src/l2l/training/engine.js'
import { type Examples, zeros } from '../../../src/learner/index.js'
import { layoutOf } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import type { Target } from '../../../src/nn/spec/network-spec.js'
import { nextTokenRows, parseTokenizer, textRow } from '../../../src/nn/tokenizers/index.js'
import type { Model } from '../../../src/nn/types.js'
import { initialWeights, openCheckpoint } from '../../../src/nn/weights/checkpoint.js'
import { exportBlocks, importBlocks } from '../../../src/nn/weights/exchange.js'
import { readSafetensors } from '../../../src/nn/weights/safetensors.js'
import { referenceOf } from '../../support/l2l/checkpoints.js'
import { BACKENDS, difference, useBackend } from '../../support/l2l/layers.js'

const TARGETS: Readonly<Record<string, Target>> = {
  bert: { kind: 'class', classes: 3 },
  'bert-number': { kind: 'number' },
  gpt2: { kind: 'next-token' },
  llama: { kind: 'next-token' },
  'llama-tied': { kind: 'next-token' }
}

for (const [name, target] of Object.entries(TARGETS)) {
  describe(`the checkpoint ${name}`, () => {
    const reference = referenceOf(name)
    const { rows, length, labels = [] } = reference
    const checkpoint = openCheckpoint(reference.folder)
    const { foreign, tensors, layout } = checkpoint
    const tokenizer = parseTokenizer(checkpoint.tokenizer as string, name)
    const { padding, separator } = tokenizer
    const sample = {
      kind: 'tokens',
      shape: [length],
      vocabulary: foreign?.vocabulary as number,
      ...(layout === 'bert' && { padding, separator })
    } as const
    const model = createModel(checkpoint.layers, sample, target)
    const blocks = [...initialWeights(model, checkpoint, INITIAL_SEED).blocks()]
    const width = rows[0].length
    const examples: Examples = {
      size: rows.length,
      labels: Float32Array.from({ length: rows.length }, (_, row) => labels[row] ?? 0),
      offsets: Int32Array.from({ length: rows.length + 1 }, (_, row) => row * width),
      indices: Int32Array.from({ length: rows.length * width }, (_, i) => i % width),
      values: Float32Array.from(rows.flat())
    }
    const batch = new DenseRows(model)
    for (let row = 0; row < rows.length; row++) batch.append(examples, row)

    it('has the rows of its tokenizer', () => {
      const { text = '', texts } = reference
      const made = texts?.map(pair => textRow(pair, tokenizer, length)) ?? nextTokenRows(text, tokenizer, length)
      assert.deepEqual(
        made.map(row => [...row]),
        rows
      )
    })

    for (const backend of BACKENDS) {
      it(`has the logits of transformers on ${backend}`, async () => {
        await useBackend(backend)
        const logits = logitsOf(model, blocks, batch)
        const expected = Float32Array.from(reference.logits.flat(2) as number[])
        const last = logits.length / rows.length
        const each = expected.length / rows.length
        const compared = Float32Array.from(expected, (_, i) => {
          const row = Math.floor(i / each)
          return logits[(row + 1) * last - each + (i % each)]
        })
        for (const [i, logit] of expected.entries()) assert.ok(Math.abs(compared[i] - logit) < 1e-4, `${i}`)
      })

      it(`has the gradients of torch on ${backend}, layer by layer`, async () => {
        await useBackend(backend)
        const file = readSafetensors(join(reference.folder, 'gradients.safetensors'))
        const expected = [...importBlocks(model, file, { layout, seed: 1 })]
        const gradients = zeros(layoutOf(model))
        const executor = new Executor(model, { schedule: 'l2l', microbatch: 2, stash: 'host' })
        const { loss } = executor.train(new BlockStore(model, blocks, gradients), batch)
        executor.close()
        assert.ok(Math.abs(loss / rows.length - reference.losses[0]) < 1e-4)
        const means = gradients.map(block => block.map(g => g / rows.length))
        for (const [k, block] of means.entries()) {
          const off = difference([block], [expected[k]])
          assert.ok(off < 1e-3, `${layoutOf(model).blocks[k].name}: ${off}`)
        }
      })

      it(`has the losses of three steps of torch's AdamW on ${backend}`, async () => {
        await useBackend(backend)
        const { step, decay, losses } = reference
        const engine = new L2LEngine({
          model,
          schedule: 'l2l-p',
          rule: { name: 'adamw', step, decay },
          averaging: { name: 'none' },
          batch: rows.length,
          predictWith: 'current',
          initial: blocks
        })
        const measured = losses.map(() => {
          const before = engine.progress.loss
          engine.learn(examples)
          return (engine.progress.loss - before) / rows.length
        })
        engine.finish()
        for (const [i, loss] of losses.entries())
          assert.ok(Math.abs(measured[i] - loss) < 1e-4, `${measured[i]}, ${loss}`)
      })
    }

    it('is written as it was read, bit for bit', () => {
      const { unneeded } = initialWeights(model, checkpoint, INITIAL_SEED)
      const written = new Map(exportBlocks(model, blocks, layout).map(one => [one.name, one]))
      const needed = [...tensors].filter(([name]) => !unneeded.includes(name))
      assert.deepEqual([...written.keys()].sort(), needed.map(([name]) => name).sort())
      for (const [name, { shape, read }] of needed) {
        assert.deepEqual(written.get(name)?.shape, shape)
        assert.deepEqual(written.get(name)?.read(), read())
      }
    })
  })
}

function logitsOf(model: Model, blocks: readonly Float32Array[], batch: DenseRows): Float32Array {
  const head = { ...model.head, predict: (x: tf.Tensor) => tf.clone(x) }
  const executor = new Executor({ ...model, head }, { microbatch: 2 })
  const logits = executor.predict(new BlockStore(model, blocks, []), batch)
  executor.close()
  return logits
}

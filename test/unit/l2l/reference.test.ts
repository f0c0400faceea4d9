/** BERT and GPT-2 compared with `transformers` and `torch`: rows, logits, gradients, and three steps of AdamW. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { networkModel } from '../../../src/l2l/execution.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { BlockStore } from '../../../src/l2l/executor/types.js'
import { INITIAL_SEED } from '../../../src/l2l/network-learner.js'
import { L2LEngine } from '../../../src/l2l/training/engine.js'
import { zeros } from '../../../src/learning/index.js'
import { layoutOf } from '../../../src/nn/blocks.js'
import type { Target } from '../../../src/nn/spec/network-spec.js'
import { nextTokenRows, textRow } from '../../../src/nn/tokenizers/index.js'
import { initialWeights } from '../../../src/nn/weights/checkpoint.js'
import { exportBlocks, importBlocks } from '../../../src/nn/weights/exchange.js'
import { readSafetensors } from '../../../src/nn/weights/safetensors.js'
import { batchOf, logitsOff, networkOf, referenceOf } from '../../support/l2l/checkpoints.js'
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
    const { rows, length } = reference
    const { checkpoint, tokenizer, network } = networkOf(reference, target)
    const { tensors, layout } = checkpoint
    const model = networkModel(network)
    const blocks = [...initialWeights(model, checkpoint, INITIAL_SEED).blocks()]
    const { examples, batch } = batchOf(model, reference)

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
        assert.ok(logitsOff(model, blocks, batch, reference.logits) < 1e-4)
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

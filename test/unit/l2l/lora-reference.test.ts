/** Adapters compared with those of `peft` and of plain `torch`: logits, three steps of AdamW, and the merged weights. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { frozenOf, initialOf, networkModel, wholeBlocks, wholeNetwork } from '../../../src/l2l/execution.js'
import { L2LEngine } from '../../../src/l2l/training/engine.js'
import { layersWithBlocks } from '../../../src/nn/blocks.js'
import type { Target, TuningSpec } from '../../../src/nn/spec/network-spec.js'
import { type Layer, sizeOf } from '../../../src/nn/types.js'
import { weightsDigest } from '../../../src/nn/weights/checkpoint.js'
import { type LayoutName, locateWeight } from '../../../src/nn/weights/layouts.js'
import { readSafetensors, type TensorFile } from '../../../src/nn/weights/safetensors.js'
import { batchOf, logitsOff, networkOf, type Reference, referenceOf } from '../../support/l2l/checkpoints.js'
import { BACKENDS, useBackend } from '../../support/l2l/layers.js'

const TARGETS: Readonly<Record<string, Target>> = { bert: { kind: 'class', classes: 3 }, llama: { kind: 'next-token' } }

interface LoraReference extends Pick<Reference, 'logits' | 'losses' | 'step' | 'decay'> {
  readonly lora: NonNullable<TuningSpec['lora']>
}

for (const [name, target] of Object.entries(TARGETS)) {
  describe(`adapters of the checkpoint ${name}`, () => {
    const reference = referenceOf(name)
    const { folder } = reference
    const expected: LoraReference = JSON.parse(readFileSync(join(folder, 'lora.json'), 'utf8'))
    const { lora, logits, losses, step, decay } = expected
    const { checkpoint, network } = networkOf(reference, target)
    const tuning = { lora, heads: name === 'bert' ? ['output'] : [] }
    const spec = { ...network, weights: weightsDigest(checkpoint), tuning }
    const model = networkModel(spec)
    const { examples, batch } = batchOf(model, reference)
    const frozen = frozenOf(spec, model, folder)
    const adapters = readSafetensors(join(folder, 'adapter.safetensors'))
    const layers = layersWithBlocks(model)
    const initial = [...(initialOf(spec, model, folder)?.() ?? [])].map((block, k) =>
      layers[k].adapters === undefined ? block : blockOf(layers[k], adapters, checkpoint.layout)
    )

    for (const backend of BACKENDS) {
      it(`have the logits of peft on ${backend}, also when they are merged`, async () => {
        await useBackend(backend)
        assert.ok(logitsOff(model, initial, batch, logits, frozen) < 1e-4)
        const whole = networkModel(wholeNetwork(spec))
        assert.ok(logitsOff(whole, wholeBlocks(spec, initial, folder), batch, logits) < 1e-4)
      })

      it(`have the losses of three steps of torch's AdamW on ${backend}`, async () => {
        await useBackend(backend)
        const { size } = examples
        const rule = { name: 'adamw', step, decay } as const
        const averaging = { name: 'none' } as const
        const options = { model, frozen, initial, rule, averaging, batch: size, predictWith: 'current' } as const
        const engine = new L2LEngine({ ...options, schedule: 'l2l-p', microbatch: 2 })
        const measured = losses.map(() => {
          const before = engine.progress.loss
          engine.learn(examples)
          return (engine.progress.loss - before) / size
        })
        engine.finish()
        for (const [i, loss] of losses.entries()) assert.ok(Math.abs(measured[i] - loss) < 1e-4, `${measured}`)
      })
    }

    it('need the weights that they were made from', () => {
      assert.throws(() => frozenOf(spec, model, undefined), /starts from the weights [0-9a-f]{32}: give them/)
      const other = referenceOf(name === 'bert' ? 'bert-number' : 'llama-tied').folder
      assert.throws(
        () => frozenOf(spec, model, other),
        /was made from the weights [0-9a-f]{32}, and .* holds [0-9a-f]{32}/
      )
    })
  })
}

/** The block of a layer from adapters of `peft`, which has one for each part of a kernel, transposed. */
function blockOf(
  { name, weights, frozen = [], adapters = [] }: Layer,
  file: TensorFile,
  layout: LayoutName
): Float32Array {
  const block = new Float32Array(weights.reduce((sum, { shape }) => sum + sizeOf(shape), 0))
  let at = 0
  for (const [i, { weight, rank, parts }] of adapters.entries()) {
    const [[inputs], [, outputs]] = [weights[2 * i].shape, weights[2 * i + 1].shape]
    const width = outputs / parts
    const names = locateWeight(layout, name, frozen[weight].name)?.names ?? []
    for (const [k, path] of names.entries()) {
      const read = (part: string) =>
        file.get(`base_model.model.${path.replace(/weight$/, `lora_${part}.weight`)}`)?.read() as Float32Array
      const [a, b] = [read('A'), read('B')]
      for (let r = 0; r < rank; r++) {
        for (let row = 0; row < inputs; row++) block[at + row * parts * rank + k * rank + r] = a[r * inputs + row]
        const line = at + inputs * parts * rank + r * outputs + k * width
        for (let column = 0; column < width; column++) block[line + column] = b[column * rank + r]
      }
    }
    at += inputs * parts * rank + rank * outputs
  }
  return block
}

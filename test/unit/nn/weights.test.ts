/** Weight files: the safetensors format, the project's layout, and the layouts of GPT-2 and BERT. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { initialBlocks } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { Model, Sample } from '../../../src/nn/types.js'
import { coverageOf, exportBlocks, importBlocks } from '../../../src/nn/weights/exchange.js'
import { type LayoutName, PREFIXES } from '../../../src/nn/weights/layouts.js'
import { readSafetensors, writeSafetensors } from '../../../src/nn/weights/safetensors.js'
import { scratchFolder } from '../../support/scratch.js'

const WIDTH = 4
const LENGTH = 3
const VOCABULARY = 5
const text: Sample = { kind: 'tokens', shape: [LENGTH], vocabulary: VOCABULARY }
const gpt2 = createModel(parseModel({ model: 'gpt2', width: WIDTH, layers: 2, heads: 2 }, 'gpt2'), text, {
  kind: 'next-token'
})
const bert = createModel(parseModel({ model: 'bert', width: WIDTH, layers: 1, heads: 2 }, 'bert'), text, {
  kind: 'class',
  classes: 2
})
const imported = (model: Model, from: string, layout: LayoutName) => [
  ...importBlocks(model, readSafetensors(from), { layout, seed: 6 })
]

describe('safetensors', () => {
  const folder = scratchFolder()
  let file: string
  before(() => {
    file = join(folder, 'm.safetensors')
  })

  it('reads F16 and BF16', () => {
    writeRaw(
      { a: entry('F16', [4], 0, 8), b: entry('BF16', [2], 8, 12) },
      [0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0xff, 0x7b, 0x80, 0x3f, 0x20, 0xc0]
    )
    const read = readSafetensors(file)
    assert.deepEqual(read.get('a')?.read(), Float32Array.of(1, -2, 2 ** -24, 65504))
    assert.deepEqual(read.get('b')?.read(), Float32Array.of(1, -2.5))
  })

  const corruptions: [name: string, corrupt: () => void, message: RegExp][] = [
    [
      'a header longer than the file',
      () => writeFileSync(file, Buffer.alloc(8, 255)),
      /the header length is \d+ bytes/
    ],
    [
      'fewer bytes than the shape needs',
      () => writeRaw({ a: entry('F32', [2], 0, 4) }, [0, 0, 0, 0]),
      /tensor a has 4 bytes/
    ],
    ['a tensor beyond the end', () => writeRaw({ a: entry('F32', [1], 4, 8) }, [0, 0, 0, 0]), /tensor a .* at 4 of 4/],
    ['no JSON', () => writeFileSync(file, Buffer.from('\u0003\0\0\0\0\0\0\0abc')), /the header is not a JSON object/]
  ]
  for (const [name, corrupt, message] of corruptions) {
    it(`rejects ${name}`, () => {
      corrupt()
      assert.throws(() => readSafetensors(file), { name: 'ModelError', message })
    })
  }

  it('lists tensors of other types, which cannot be read', () => {
    writeRaw({ a: entry('I64', [1], 0, 8) }, Array(8).fill(0))
    const tensor = readSafetensors(file).get('a')
    assert.equal(tensor?.dtype, 'I64')
    assert.throws(() => tensor?.read(), { name: 'ModelError', message: /tensor a has dtype I64, expected F32/ })
  })

  it('names a missing file', () => {
    assert.throws(() => readSafetensors(join(folder, 'none')), /cannot read .*none \(ENOENT/)
  })

  describe('of models', () => {
    const cases: [LayoutName, Model][] = [
      ['admb', gpt2],
      ['gpt2', gpt2],
      ['admb', bert],
      ['bert', bert]
    ]
    for (const [layout, model] of cases) {
      it(`${model.name} in layout ${layout} is restored unchanged`, () => {
        const blocks = initialBlocks(model, 5).map(block => block.map((v, i) => v + i / 1000))
        writeSafetensors(file, exportBlocks(model, blocks, layout))
        assert.deepEqual(imported(model, file, layout), blocks)
        assert.deepEqual(coverageOf(model, readSafetensors(file), layout), {
          missing: [],
          missingLayers: [],
          unneeded: []
        })
      })
    }

    it('reads each block once, when its tensors are written', () => {
      const blocks = initialBlocks(gpt2, 5)
      let reads = 0
      const lazy: Float32Array[] = []
      for (const k of blocks.keys()) {
        Object.defineProperty(lazy, k, {
          get() {
            reads++
            return blocks[k]
          }
        })
      }
      const tensors = exportBlocks(gpt2, lazy, 'gpt2')
      assert.equal(reads, 0)
      writeSafetensors(file, tensors)
      assert.equal(reads, blocks.length)
      assert.deepEqual(imported(gpt2, file, 'gpt2'), blocks)
    })

    it('a file of a model without head lacks the prefix', () => {
      for (const [layout, model] of [
        ['gpt2', gpt2],
        ['bert', bert]
      ] as const) {
        const blocks = initialBlocks(model, 5)
        const tensors = exportBlocks(model, blocks, layout)
        const bare = tensors.map(one => ({ ...one, name: one.name.replace(PREFIXES[layout], '') }))
        writeSafetensors(file, bare)
        assert.deepEqual(imported(model, file, layout), blocks)
      }
    })

    it('a BERT file without a classifier keeps the initial one, and old names of norms are read', () => {
      const blocks = initialBlocks(bert, 5)
      const tensors = exportBlocks(bert, blocks, 'bert')
        .filter(({ name }) => !name.startsWith('classifier'))
        .map(one => ({
          ...one,
          name: one.name.replace('LayerNorm.weight', 'LayerNorm.gamma').replace('LayerNorm.bias', 'LayerNorm.beta')
        }))
      writeSafetensors(file, [...tensors, { name: 'cls.bias', shape: [1], read: () => Float32Array.of(1) }])
      const read = imported(bert, file, 'bert')
      assert.deepEqual(read.slice(0, -1), blocks.slice(0, -1))
      assert.deepEqual(read.at(-1), initialBlocks(bert, 6).at(-1))
      assert.deepEqual(coverageOf(bert, readSafetensors(file), 'bert'), {
        missing: ['classifier.weight', 'classifier.bias'],
        missingLayers: ['output'],
        unneeded: ['cls.bias']
      })
    })

    it('a tensor of another shape is reported with both shapes, a missing one with its name', () => {
      const tensors = exportBlocks(gpt2, initialBlocks(gpt2, 5), 'gpt2')
      writeSafetensors(
        file,
        tensors.map(one =>
          one.name === 'transformer.h.1.ln_2.bias' ? { ...one, shape: [2], read: () => Float32Array.of(1, 2) } : one
        )
      )
      const take = () => imported(gpt2, file, 'gpt2')
      assert.throws(take, {
        name: 'ModelError',
        message: /tensor transformer\.h\.1\.ln_2\.bias has shape 2, expected 4/
      })
      writeSafetensors(
        file,
        tensors.filter(({ name }) => name !== 'transformer.h.0.attn.c_attn.weight')
      )
      assert.throws(take, { name: 'ModelError', message: /no tensor transformer\.h\.0\.attn\.c_attn\.weight \(4×12\)/ })
    })

    it('a model of another structure has no names in foreign layouts', () => {
      const mlp = createModel(parseModel({ model: 'mlp' }, 'mlp'), { kind: 'features', shape: [2] }, { kind: 'number' })
      assert.throws(
        () => exportBlocks(mlp, initialBlocks(mlp, 1), 'bert'),
        /layout bert has no name for hidden0\.kernel/
      )
    })
  })

  function entry(dtype: string, shape: number[], from: number, to: number) {
    return { dtype, shape, data_offsets: [from, to] }
  }

  function writeRaw(header: object, bytes: number[]): void {
    const json = Buffer.from(JSON.stringify(header))
    const length = Buffer.alloc(8)
    length.writeBigUInt64LE(BigInt(json.length))
    writeFileSync(file, Buffer.concat([length, json, Buffer.from(bytes)]))
    assert.equal(readFileSync(file).length, 8 + json.length + bytes.length)
  }
})

/** Weight files: the safetensors format, the project's layout, and the layouts of GPT-2 and BERT. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { initialBlocks } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { Model, Sample } from '../../../src/nn/types.js'
import { exportBlocks, importBlocks } from '../../../src/nn/weights/exchange.js'
import type { LayoutName } from '../../../src/nn/weights/layouts.js'
import { readSafetensors, writeSafetensors } from '../../../src/nn/weights/safetensors.js'

const WIDTH = 4
const LENGTH = 3
const VOCABULARY = 5
const text: Sample = { kind: 'tokens', shape: [LENGTH], vocabulary: VOCABULARY }
const gpt = createModel(parseModel({ model: 'gpt', width: WIDTH, layers: 2, heads: 2 }, 'gpt'), text, {
  kind: 'next-token'
})
const encoder = createModel(
  parseModel({ model: 'transformer', width: WIDTH, layers: 1, heads: 2, norm: 'after' }, 'bert'),
  text,
  { kind: 'class', classes: 2 }
)

describe('safetensors', () => {
  let folder: string
  let file: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'weights-'))
    file = join(folder, 'm.safetensors')
  })
  after(() => rmSync(folder, { recursive: true }))

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
    [
      'an unknown type',
      () => writeRaw({ a: entry('I64', [1], 0, 8) }, Array(8).fill(0)),
      /tensor a: expected dtype F32/
    ],
    ['no JSON', () => writeFileSync(file, Buffer.from('\u0003\0\0\0\0\0\0\0abc')), /the header is not a JSON object/]
  ]
  for (const [name, corrupt, message] of corruptions) {
    it(`rejects ${name}`, () => {
      corrupt()
      assert.throws(() => readSafetensors(file), { name: 'ModelError', message })
    })
  }

  it('names a missing file', () => {
    assert.throws(() => readSafetensors(join(folder, 'none')), /cannot read .*none \(ENOENT\)/)
  })

  describe('of models', () => {
    const cases: [LayoutName, Model][] = [
      ['admb', gpt],
      ['gpt2', gpt],
      ['admb', encoder],
      ['bert', encoder]
    ]
    for (const [layout, model] of cases) {
      it(`${model.name} in layout ${layout} is restored unchanged`, () => {
        const blocks = initialBlocks(model, 5).map(block => block.map((v, i) => v + i / 1000))
        writeSafetensors(file, exportBlocks(model, blocks, layout))
        assert.deepEqual(importBlocks(model, readSafetensors(file), layout, initialBlocks(model, 6)), blocks)
      })
    }

    it('GPT-2 files have the names and shapes of GPT-2', () => {
      const tensors = exportBlocks(gpt, initialBlocks(gpt, 5), 'gpt2')
      const shapes = Object.fromEntries(tensors.map(({ name, shape }) => [name, shape]))
      assert.deepEqual(shapes['wte.weight'], [VOCABULARY, WIDTH])
      assert.deepEqual(shapes['h.1.attn.c_attn.weight'], [WIDTH, 3 * WIDTH])
      assert.deepEqual(shapes['h.1.mlp.c_fc.bias'], [4 * WIDTH])
      assert.deepEqual(shapes['ln_f.bias'], [WIDTH])
      assert.deepEqual(shapes['lm_head.weight'], [VOCABULARY, WIDTH])
      assert.equal(tensors.length, 2 + 2 * 12 + 2 + 2)
    })

    it('a GPT-2 file with a prefix, more positions and no separate output layer is accepted', () => {
      const blocks = initialBlocks(gpt, 5)
      const tensors = exportBlocks(gpt, blocks, 'gpt2')
        .filter(({ name }) => !name.startsWith('lm_head'))
        .map(({ name, shape, numbers }) =>
          name === 'wpe.weight'
            ? { name: `transformer.${name}`, shape: [9, WIDTH], numbers: new Float32Array(9 * WIDTH).fill(2) }
            : { name: `transformer.${name}`, shape, numbers }
        )
      writeSafetensors(file, tensors)
      const read = importBlocks(gpt, readSafetensors(file), 'gpt2', initialBlocks(gpt, 6))
      const tokens = VOCABULARY * WIDTH
      assert.deepEqual(read[0].subarray(0, tokens), blocks[0].subarray(0, tokens))
      assert.ok(read[0].subarray(tokens).every(v => v === 2))
      // The output kernel is the transposed token matrix, without a bias.
      const output = read[read.length - 1]
      assert.equal(output[1], blocks[0][WIDTH])
      assert.ok(output.subarray(tokens).every(v => v === 0))
    })

    it('BERT files store queries, keys and values separately and transposed', () => {
      const tensors = exportBlocks(encoder, initialBlocks(encoder, 5), 'bert')
      const names = tensors.map(({ name }) => name)
      const at = names.indexOf('encoder.layer.0.attention.self.key.weight')
      const attention = initialBlocks(encoder, 5)[2]
      assert.deepEqual(tensors[at].shape, [WIDTH, WIDTH])
      // Output 1 of the keys, input 2.
      assert.equal(tensors[at].numbers[WIDTH + 2], attention[2 * 3 * WIDTH + WIDTH + 1])
      assert.ok(names.includes('embeddings.token_type_embeddings.weight'))
      assert.ok(names.includes('encoder.layer.0.output.LayerNorm.weight'))
    })

    it('a BERT file without a classifier keeps the initial one, and token types are added to the positions', () => {
      const blocks = initialBlocks(encoder, 5)
      const tensors = exportBlocks(encoder, blocks, 'bert')
        .filter(({ name }) => !name.startsWith('classifier'))
        .map(one => (one.name.includes('token_type') ? { ...one, numbers: one.numbers.map(() => 1) } : one))
      writeSafetensors(file, tensors)
      const fresh = initialBlocks(encoder, 6)
      const read = importBlocks(encoder, readSafetensors(file), 'bert', fresh)
      assert.deepEqual(read[read.length - 1], fresh[fresh.length - 1])
      const firstPosition = VOCABULARY * WIDTH
      assert.equal(read[0][firstPosition], Math.fround(blocks[0][firstPosition] + 1))
    })

    it('a tensor of another shape is reported with both shapes, a missing one with its name', () => {
      const tensors = exportBlocks(gpt, initialBlocks(gpt, 5), 'gpt2')
      writeSafetensors(
        file,
        tensors.map(one =>
          one.name === 'h.1.ln_2.bias' ? { ...one, shape: [2], numbers: Float32Array.of(1, 2) } : one
        )
      )
      const take = () => importBlocks(gpt, readSafetensors(file), 'gpt2', initialBlocks(gpt, 5))
      assert.throws(take, { name: 'ModelError', message: /tensor h\.1\.ln_2\.bias has shape 2, expected 4/ })
      writeSafetensors(
        file,
        tensors.filter(({ name }) => name !== 'h.0.attn.c_attn.weight')
      )
      assert.throws(take, { name: 'ModelError', message: /no tensor h\.0\.attn\.c_attn\.weight \(4×12\)/ })
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

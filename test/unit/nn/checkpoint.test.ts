/** Checkpoints on disk: parts, digests, tokenizers of vocabulary files. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkpointBlocks } from '../../../src/l2l/execution.js'
import { initialBlocks } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import { type NetworkSpec, networkName } from '../../../src/nn/spec/network-spec.js'
import { parseTokenizer } from '../../../src/nn/tokenizers/index.js'
import { readTokenizer } from '../../../src/nn/tokenizers/subwords.js'
import { initialWeights, openCheckpoint, weightsDigest } from '../../../src/nn/weights/checkpoint.js'
import { writeNetwork } from '../../../src/nn/weights/write-checkpoint.js'
import { referenceOf } from '../../support/l2l/checkpoints.js'
import { scratchFolder } from '../../support/scratch.js'

describe('checkpoints', () => {
  const dir = scratchFolder()

  const { tokenizer } = openCheckpoint(referenceOf('bert').folder)
  const spec: NetworkSpec = {
    layers: parseModel({ model: 'bert', width: 8, layers: 2, heads: 2, positions: 9 }, 'bert'),
    sample: { kind: 'tokens', shape: [6], vocabulary: 60, padding: 0, separator: 3 },
    target: { kind: 'class', classes: 2 },
    text: { length: 6, pieces: tokenizer, columns: ['a', 'b'], label: 'c', isPair: true, classNames: ['no', 'yes'] }
  }
  const model = createModel(spec.layers, spec.sample, spec.target)
  const blocks = initialBlocks(model, 4)

  it('in parts are the same as in one file', () => {
    const [whole, parts] = [join(dir, 'whole'), join(dir, 'parts')]
    writeNetwork(whole, { spec, model, blocks }, 'bert')
    const files = writeNetwork(parts, { spec, model, blocks }, 'bert', 2000)
    assert.deepEqual([...files].sort(), readdirSync(parts).sort())
    assert.ok(files.filter(name => name.endsWith('.safetensors')).length > 3, `${files}`)
    const [one, other] = [whole, parts].map(openCheckpoint)
    assert.deepEqual([...initialWeights(model, other, 1).blocks()], blocks)
    assert.equal(weightsDigest(other), weightsDigest(one))
    const { layers, foreign } = other
    assert.deepEqual(layers, { ...spec.layers, inner: 32 })
    const { length, columns, label, isPair } = spec.text ?? {}
    assert.deepEqual(foreign?.text, { length, columns, label, isPair })
    assert.deepEqual(foreign?.classNames, ['no', 'yes'])
  })

  it('are read for predictions one block at a time, each time that it is accessed', () => {
    const folder = join(dir, 'lazy')
    writeNetwork(folder, { spec, model, blocks }, 'bert')
    const network = { ...spec, weights: weightsDigest(openCheckpoint(folder)) }
    const read = checkpointBlocks(network, folder)
    assert.deepEqual([...(read ?? [])], blocks)
    assert.notEqual(read?.[0], read?.[0])
    rmSync(folder, { recursive: true })
    assert.throws(() => read?.[0], { code: 'ERR_MODEL' })
    assert.equal(checkpointBlocks(spec, folder), undefined)
  })

  it('of other weights have another digest, which is part of the model', () => {
    const changed = join(dir, 'changed')
    writeNetwork(
      changed,
      { spec, model, blocks: blocks.map((block, k) => (k === 3 ? block.map(w => w + 1) : block)) },
      'bert'
    )
    const [a, b] = [join(dir, 'whole'), changed].map(folder => weightsDigest(openCheckpoint(folder)))
    assert.notEqual(a, b)
    assert.notEqual(networkName({ ...spec, weights: a }), networkName({ ...spec, weights: b }))
    assert.notEqual(networkName({ ...spec, weights: a }), networkName(spec))
  })

  it('with an index that names a tensor that no part has are refused', () => {
    const parts = join(dir, 'parts')
    const index = join(parts, 'model.safetensors.index.json')
    const content = JSON.parse(readFileSync(index, 'utf8'))
    const [[, part]] = Object.entries(content.weight_map)
    writeFileSync(index, JSON.stringify({ weight_map: { ...content.weight_map, other: part } }))
    assert.throws(() => openCheckpoint(parts), { name: 'ModelError', message: /has no tensor other/ })
  })

  it('have the same tokens by vocabulary files as by tokenizer.json', () => {
    const json = JSON.parse(tokenizer as string)
    const entries = Object.entries<number>(json.model.vocab).sort(([, a], [, b]) => a - b)
    writeFileSync(join(dir, 'vocab.txt'), entries.map(([piece]) => `${piece}\n`).join(''))
    const known = parseTokenizer(tokenizer as string, 'json')
    const read = parseTokenizer(readTokenizer(dir) as string, 'vocab.txt')
    assert.equal(read.vocabulary, known.vocabulary)
    for (const texts of [['The river rises!'], ['the rain', 'Hills and [MASK] boats']]) {
      assert.deepEqual(read.encodeWithSpecialTokens(texts, 99), known.encodeWithSpecialTokens(texts, 99))
    }
    writeFileSync(join(dir, 'tokenizer_config.json'), '{"do_lower_case": false}')
    const cased = parseTokenizer(readTokenizer(dir) as string, 'vocab.txt')
    assert.notDeepEqual(cased.encode('The river'), known.encode('The river'))
  })
})

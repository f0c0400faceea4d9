/** Networks from and to Hugging Face's folders: evaluated, predicted, fine-tuned, exported, and evaluated again. */
import assert from 'node:assert/strict'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { assertCompatible } from '../../../src/network/hello.js'
import { readSafetensors } from '../../../src/nn/weights/safetensors.js'
import { learningSpecFields } from '../../../src/task/spec-text.js'
import { createPeerTask } from '../../../src/task/task.js'
import { admb, admbJson } from '../../support/admb-command.js'
import { referenceOf } from '../../support/l2l/checkpoints.js'
import { scratchFolder } from '../../support/scratch.js'

const NAMES = ['other', 'same', 'unclear']

describe('checkpoints on the command line', function () {
  this.timeout(120_000)
  const bert = referenceOf('bert')
  const numbers = referenceOf('bert-number')
  const gpt2 = referenceOf('gpt2')
  const llama = referenceOf('llama')
  const dir = scratchFolder()
  let pairs: string
  let scores: string
  let book: string
  before(async () => {
    pairs = await file('pairs.tsv', tableOf('same', bert.labels?.map(label => NAMES[label]) ?? []))
    scores = await file('scores.tsv', tableOf('score', numbers.labels?.map(String) ?? []))
    book = await file('book.txt', gpt2.text as string)
  })

  function tableOf(label: string, values: readonly string[]): string {
    const rows = bert.texts?.map(([a, b], i) => `${a}\t${b}\t${values[i]}\n`) ?? []
    return `first\tsecond\t${label}\n${rows.join('')}`
  }

  async function file(name: string, content: string): Promise<string> {
    const path = join(dir, name)
    await writeFile(path, content)
    return path
  }

  const optionsOf = (from: { readonly folder: string }, data: string, label?: string) => [
    ...['--weights', from.folder, '--data', data, '--length', '16'],
    ...(label === undefined ? [] : ['--label', label])
  ]
  const isNear = (value: number, expected: number) =>
    assert.ok(Math.abs(value - expected) < 1e-4, `${value}, ${expected}`)

  it('have the losses of transformers', async () => {
    for (const [from, data, label] of [
      [bert, pairs, 'same'],
      [numbers, scores, 'score'],
      [gpt2, book, undefined],
      [llama, book, undefined]
    ] as const) {
      const { loss, inputs } = await admbJson(['eval', ...optionsOf(from, data, label)])
      isNear(loss, from.losses[0])
      assert.equal(inputs, from.rows.length)
    }
  })

  it('predict texts without labels, by the names of their classes', async () => {
    const table = (await readFile(pairs, 'utf8')).replace(/\t\w+$/gm, '')
    const data = await file('new.tsv', table)
    const { code, stdout, stderr } = await admb(['predict', ...optionsOf(bert, data)])
    assert.equal(code, 0, stderr)
    const softmax = (logits: readonly number[]) => {
      const powers = logits.map(Math.exp)
      return powers.map(power => power / powers.reduce((a, b) => a + b))
    }
    const expected = (bert.logits as number[][]).map(softmax).map(p => {
      const best = p.indexOf(Math.max(...p))
      return `${NAMES[best]} ${p[best].toFixed(4)}`
    })
    assert.deepEqual(stdout.trim().split('\n'), expected)
  })

  it('are fine-tuned with the losses of torch, and exported folders are read again', async () => {
    const { step, decay, losses } = bert
    const model = join(dir, 'tuned')
    const rule = `adamw,step=${step},decay=${decay}`
    const { code, stderr, stdout } = await admb([
      ...['train', ...optionsOf(bert, pairs, 'same'), '--rule', rule, '--batch', '4', '--passes', '4'],
      ...['--predict-with', 'current', '--average', 'none', '--dir', model, '--json']
    ])
    assert.equal(code, 0, stderr)
    assert.match(stderr, /does not need: bert\.embeddings\.position_ids, cls\.predictions\.bias\n/)
    isNear(JSON.parse(stdout).averageLoss, losses.reduce((a, b) => a + b) / losses.length)
    const { loss } = await admbJson(['eval', '--dir', model, '--data', pairs])
    for (const layout of ['bert', 'admb']) {
      const out = join(dir, `tuned-${layout}`)
      await admbJson(['export', '--dir', model, '--layout', layout, '--out', out])
      // Length, columns and label are part of the folder.
      const again = await admbJson(['eval', '--weights', out, '--data', pairs])
      assert.equal(again.loss, loss, layout)
    }
  })

  it('are exported as they were read, bit for bit', async () => {
    for (const [name, from, data] of [
      ['bert', bert, pairs],
      ['gpt2', gpt2, book]
    ] as const) {
      const [model, out] = [join(dir, `same-${name}`), join(dir, `exported-${name}`)]
      // Steps too short to change a weight.
      const rule = ['--rule', 'adamw,step=1e-30,decay=0', '--average', 'none']
      await admbJson(['train', ...optionsOf(from, data, name === 'bert' ? 'same' : undefined), ...rule, '--dir', model])
      const { files } = await admbJson(['export', '--dir', model, '--out', out])
      assert.deepEqual(files, ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'])
      const parts = name === 'bert' ? ['model'] : ['model-00001-of-00002', 'model-00002-of-00002']
      const originals = parts.flatMap(part => [...readSafetensors(join(from.folder, `${part}.safetensors`))])
      const exported = readSafetensors(join(out, 'model.safetensors'))
      const floats = originals
        .filter(([, { dtype }]) => dtype === 'F32')
        .filter(([tensor]) => !tensor.startsWith('cls'))
      assert.deepEqual([...exported.keys()].sort(), floats.map(([tensor]) => tensor).sort())
      for (const [tensor, { shape, bytes }] of floats) {
        assert.deepEqual(exported.get(tensor)?.shape, shape)
        assert.deepEqual(exported.get(tensor)?.bytes(), bytes())
      }
    }
  })

  it('are continued without the folder that they came from', async () => {
    const model = join(dir, 'tuned')
    const before = await admbJson(['eval', '--dir', model, '--data', pairs])
    const { averageLoss } = await admbJson(['train', '--dir', model, '--data', pairs, '--predict-with', 'current'])
    assert.equal(averageLoss, before.loss)
  })

  it('are fine-tuned with adapters, which need the folder and are merged into the exported one', async () => {
    const model = join(dir, 'adapted')
    const rule = ['--rule', 'adamw,step=0.02', '--batch', '2', '--passes', '6', '--average', 'none']
    const adapt = ['train', ...optionsOf(bert, pairs, 'same'), '--lora', 'rank=2,layers=all', ...rule, '--dir', model]
    const [, advice = ''] = /\(try: admb (.*)\)/.exec((await admb(adapt)).stdout) ?? []
    await admbJson(advice.replace('FILE', pairs).split(' '))
    const evaluate = ['eval', '--data', pairs, '--dir', model]
    const { loss } = await admbJson([...evaluate, '--weights', bert.folder])
    assert.ok(loss < bert.losses[0] - 0.2, `${loss}`)
    const out = join(dir, 'merged')
    await admbJson(['export', '--dir', model, '--weights', bert.folder, '--out', out])
    isNear((await admbJson(['eval', '--weights', out, '--data', pairs])).loss, loss)
    const tokenizer = JSON.parse(await readFile(join(out, 'tokenizer_config.json'), 'utf8'))
    assert.deepEqual(tokenizer.model_input_names, ['input_ids', 'token_type_ids', 'attention_mask'])
    const own = join(dir, 'merged-admb')
    await admbJson(['export', '--dir', model, '--weights', bert.folder, '--layout', 'admb', '--out', own])
    isNear((await admbJson(['eval', '--weights', own, '--data', pairs])).loss, loss)
    const more = ['train', '--dir', model, '--weights', bert.folder, '--data', pairs]
    assert.ok((await admbJson(more)).averageLoss < loss + 0.05)
    const refuses = async (args: readonly string[], line: RegExp) => {
      const { code, stderr } = await admb(args)
      assert.notEqual(code, 0, stderr)
      assert.match(stderr, line)
    }
    await refuses(evaluate, /starts from the weights [0-9a-f]{32}: give them \(--weights PATH\)/)
    await refuses([...evaluate, '--weights', out], /was made from the weights [0-9a-f]{32}, and .*merged holds/)
    const { plan } = await admbJson(['plan', ...optionsOf(bert, pairs, 'same'), '--lora', 'rank=2'])
    assert.ok(plan.deviceBytes > 0)
    await refuses(['train', '--data', pairs, '--lora', 'rank=2'], /--freeze and --lora keep weights .* give them/)
    const train = ['train', ...optionsOf(bert, pairs, 'same')]
    await refuses([...train, '--lora', 'rnk=2'], /lora: expected rank, alpha, layers/)
    await refuses([...train, '--lora', 'rank=2.5'], /lora: rank: .*int/)
    await refuses([...train, '--freeze', 'layers:2'], /no layer with weights is called layers:2; give embeddings/)
    await refuses(
      [...train, '--dir', model, '--lora', 'rank=3'],
      /holds the state of another model|ERR_MODEL_MISMATCH|differs|other/
    )
  })

  it('refuse peers that start from other weights, or train another part of them, by name', async () => {
    const helloOf = async (checkpoint: string, lora?: object, freeze?: string[]) => {
      const task = { checkpoint, data: { data: pairs, label: 'same' }, length: 16, lora, freeze }
      return { protocol: 1, fields: learningSpecFields((await createPeerTask(task)).spec) }
    }
    const other = join(dir, 'other-weights')
    await cp(bert.folder, other, { recursive: true })
    const file = join(other, 'model.safetensors')
    const bytes = await readFile(file)
    bytes[bytes.length - 3] ^= 1
    await writeFile(file, bytes)
    const ours = await helloOf(bert.folder, { rank: 2 })
    assertCompatible('peer', ours, await helloOf(bert.folder, { rank: 2, alpha: 4 }))
    const refused = (theirs: typeof ours, line: RegExp) =>
      assert.throws(() => assertCompatible('peer', ours, theirs), line)
    refused(
      await helloOf(other, { rank: 2 }),
      /has weights [0-9a-f]{32}, this peer [0-9a-f]{32}: start both with the same --weights/
    )
    refused(
      await helloOf(bert.folder, { rank: 4 }),
      /has lora rank=4,alpha=8,layers=attention and output, this peer rank=2/
    )
    refused(await helloOf(bert.folder), /has lora none, this peer rank=2/)
    refused(await helloOf(bert.folder, { rank: 2 }, ['layers:0']), /has freeze layers:0, this peer none/)
  })

  it('are read from the state directory of an earlier run', async () => {
    const from = join(dir, 'tuned')
    const { loss } = await admbJson(['eval', '--dir', from, '--data', pairs])
    isNear((await admbJson(['eval', '--weights', from, '--data', pairs])).loss, loss)
    const train = ['train', '--weights', from, '--data', pairs, '--lora', 'rank=2', '--average', 'none']
    await admbJson([...train, '--dir', join(dir, 'again')])
    const again = ['eval', '--dir', join(dir, 'again'), '--data', pairs]
    assert.ok((await admbJson([...again, '--weights', from])).loss < loss + 0.05)
  })

  it('generate text with adapters, from a stored predictor', async () => {
    const model = join(dir, 'adapted-gpt2')
    await admbJson(['train', ...optionsOf(gpt2, book), '--lora', 'rank=2', '--dir', model])
    const generate = ['generate', '--dir', model, '--weights', gpt2.folder, '--prompt', 'the river', '--tokens', '5']
    assert.equal((await admbJson(generate)).tokens.length, 5)
  })

  it('generate text, the same for the same seed', async () => {
    const generate = ['generate', '--weights', gpt2.folder, '--prompt', 'the river', '--tokens', '9', '--seed', '4']
    const drawn = await admbJson(generate)
    assert.equal(drawn.tokens.length, 9)
    assert.match(drawn.text, /^the river/)
    assert.deepEqual(await admbJson(['generate', '--dir', join(dir, 'same-gpt2'), ...generate.slice(3)]), drawn)
    const { stdout } = await admb(generate)
    assert.ok(stdout.startsWith('the river'))
    assert.notDeepEqual((await admbJson([...generate.slice(0, -1), '5'])).tokens, drawn.tokens)
    const { code, stderr } = await admb(['generate', '--weights', bert.folder, '--prompt', 'the'])
    assert.equal(code, 2)
    assert.match(stderr, /^admb: the model bert does not generate text/)
  })

  it('that do not fit are refused in one line', async () => {
    const folder = join(dir, 'broken')
    await cp(bert.folder, folder, { recursive: true })
    const config = JSON.parse(await readFile(join(folder, 'config.json'), 'utf8'))
    const withConfig = (changes: object) =>
      writeFile(join(folder, 'config.json'), JSON.stringify({ ...config, ...changes }))
    const refuses = async (args: readonly string[], line: RegExp) => {
      const { code, stderr } = await admb(args)
      assert.notEqual(code, 0, stderr)
      assert.match(stderr, line)
      assert.equal(stderr.split('\n').length, 2, stderr)
    }
    const evaluate = ['eval', '--data', pairs, '--label', 'same', '--weights']
    await withConfig({ hidden_size: 24 })
    await refuses([...evaluate, folder], /word_embeddings\.weight has shape 60×12, expected 60×24/)
    await withConfig({ vocab_size: 50 })
    await refuses([...evaluate, folder], /the tokenizer has 60 tokens, and the model of .*broken has 50/)
    await withConfig({ model_type: 't5' })
    await refuses([...evaluate, folder], /config\.json: the model type is "t5", expected bert, gpt2 or llama/)
    await withConfig({ hidden_act: 'silu' })
    await refuses([...evaluate, folder], /config\.json: hidden_act: .*gelu/)
    await withConfig({})
    await refuses([...evaluate, folder, '--length', '41'], /40 positions, and rows have 41 tokens/)
    await refuses([...evaluate, join(dir, 'none')], /cannot read .*none: there is no such file or folder/)
    await refuses(
      [...evaluate, join(dir, 'adapted')],
      /adapted holds only what was trained of a network: export it first/
    )
    await refuses([...evaluate, folder, '--dir', join(dir, 'tuned')], /give either --dir or --weights/)
    await refuses(['train', '--data', pairs, '--model', 'bert', '--weights', folder], /brings its own model/)
    const tuned = ['export', '--dir', join(dir, 'tuned'), '--out']
    await refuses([...tuned, folder], /broken is not empty: give a new folder/)
    await refuses([...tuned, join(dir, 'other'), '--layout', 'gpt2'], /this one is bert: give --layout bert/)
    await mkdir(join(dir, 'empty'))
    await refuses([...evaluate, join(dir, 'empty')], /empty has no model\.safetensors/)
  })
})

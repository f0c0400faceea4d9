/** Peers of each kind of model continue from their directories with the same options. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CreatePeerOptions, createPeer } from '../../../src/library/create-peer.js'
import type { StreamOptions } from '../../../src/streams/index.js'
import { until } from '../../support/peer-processes.js'

const NUMBERS = { width: 8, layers: 1, heads: 2 }
const words = ['tea', 'rain', 'lamp', 'sea', 'ship', 'wind', 'a', 'the']
const word = (i: number) => words[(i * 7 + (i >> 3)) % words.length]
const sentence = (i: number) => `${word(i)} ${word(i + 3)} ${word(i + 5)}`
const lines = (head: string, line: (i: number) => string, count = 600) =>
  `${head}${Array.from({ length: count }, (_, i) => `${line(i)}\n`).join('')}`

const files: Readonly<Record<string, string>> = {
  'classes.csv': lines('size,kind,bought\n', i => `${i % 17},${word(i)},${i % 3 ? 'yes' : 'no'}`),
  'numbers.csv': lines('size,kind,price\n', i => `${i % 17},${word(i)},${(i % 17) * 3.5 + (i % 5)}`),
  'text.csv': lines('review,label\n', i => `${sentence(i)},${i % 2 ? 'good' : 'bad'}`),
  'scores.csv': lines('review,score\n', i => `${sentence(i)},${(i % 11) / 2}`),
  'pairs.csv': lines('first,second,same\n', i => `${sentence(i)},${sentence(i + 1)} ${i},${i % 2 ? 'yes' : 'no'}`),
  'play.txt': lines('', sentence)
}

type Options = Omit<CreatePeerOptions, 'data'> & Pick<StreamOptions, 'data' | 'label'>

const tasks: readonly [string, Options][] = [
  ['logistic', { data: 'classes.csv', label: 'bought' }],
  ['softmax', { data: 'digits' }],
  ['linear', { data: 'numbers.csv', label: 'price', target: 'number' }],
  ['mlp', { data: 'classes.csv', label: 'bought', model: { model: 'mlp', hidden: [4] } }],
  ['mlp of numbers', { data: 'numbers.csv', label: 'price', target: 'number', model: { model: 'mlp', hidden: [4] } }],
  ['transformer', { data: 'text.csv', label: 'label', length: 8, model: { model: 'transformer', ...NUMBERS } }],
  [
    'transformer of numbers',
    { data: 'scores.csv', label: 'score', target: 'number', length: 8, model: { model: 'transformer', ...NUMBERS } }
  ],
  [
    'bert',
    { data: 'pairs.csv', label: 'same', length: 12, tokenizer: 'wordpiece:300', model: { model: 'bert', ...NUMBERS } }
  ],
  ['gpt', { data: 'play.txt', length: 8, model: { model: 'gpt', ...NUMBERS } }],
  ['gpt2', { data: 'play.txt', length: 8, tokenizer: 'bpe:280', model: { model: 'gpt2', ...NUMBERS } }],
  ['llama', { data: 'play.txt', length: 8, model: { model: 'llama', ...NUMBERS } }]
]

describe('a restarted peer continues', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'admb-restart-'))
  before(() => {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  for (const [name, { data, label, ...options }] of tasks)
    it(name, async () => {
      const path = data === 'digits' ? data : join(folder, data)
      const stream = { data: path, passes: 1000, ...(label && { label }) }
      const start = () =>
        createPeer({ batch: 16, listen: [], rate: 400, ...options, data: stream, dir: join(folder, name) })
      const first = await start()
      await until('it has updated', () => first.status().predictor.updates > 1)
      await first.stop()
      const { inputs, predictor } = first.status()
      const second = await start()
      try {
        await until('it continues', () => second.status().inputs > inputs)
        assert.ok(second.status().predictor.updates >= predictor.updates)
        assert.equal(second.status().incarnation, 2)
      } finally {
        await second.stop()
      }
    })
})

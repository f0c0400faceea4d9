/** A small task for each kind of model, with its data. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const SMALL = { width: 8, layers: 1, heads: 2 }
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

/** Options of the task with the names of the command line; `data` is a file or `digits`. */
export interface KindOfModel {
  readonly data: string
  readonly label?: string
  readonly length?: number
  readonly tokenizer?: string
  readonly model?: { readonly model: string; readonly [option: string]: unknown }
}

export const kindsOfModels: readonly [string, KindOfModel][] = [
  ['logistic', { data: 'classes.csv', label: 'bought' }],
  ['softmax', { data: 'digits' }],
  ['linear', { data: 'numbers.csv', label: 'price' }],
  ['mlp', { data: 'classes.csv', label: 'bought', model: { model: 'mlp', hidden: [4] } }],
  ['mlp of numbers', { data: 'numbers.csv', label: 'price', model: { model: 'mlp', hidden: [4] } }],
  ['transformer', { data: 'text.csv', label: 'label', length: 8, model: { model: 'transformer', ...SMALL } }],
  [
    'transformer of numbers',
    { data: 'scores.csv', label: 'score', length: 8, model: { model: 'transformer', ...SMALL } }
  ],
  [
    'bert',
    { data: 'pairs.csv', label: 'same', length: 12, tokenizer: 'wordpiece:300', model: { model: 'bert', ...SMALL } }
  ],
  ['gpt', { data: 'play.txt', length: 8, model: { model: 'gpt', ...SMALL } }],
  ['gpt2', { data: 'play.txt', length: 8, tokenizer: 'bpe:280', model: { model: 'gpt2', ...SMALL } }],
  ['llama', { data: 'play.txt', length: 8, model: { model: 'llama', ...SMALL } }]
]

/** Writes the data of all tasks. */
export function writeData(folder: string): void {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
}

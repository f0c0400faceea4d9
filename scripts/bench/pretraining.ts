/**
 * A small BERT that learns from plain text first, and is then fine-tuned on MRPC: from its weights, and from random ones.
 *
 * The task on plain text needs no labels: a sentence and an altered copy of it, or another sentence about the same names, and as
 * the number to predict the share of words that both have.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { trainTokenizer } from '../../src/nn/tokenizers/train.js'
import { Random } from '../../src/streams/random.js'
import { publicData, shakespeare } from './data.js'
import { bench as glue } from './glue/index.js'
import { runAdmb } from './processes.js'
import type { Row } from './row.js'
import { UsageError } from './usage.js'

/** About ten minutes on one core with a BLAS. */
const PAIRS = 192_000
const BATCH = 32
const PIECES = 8000
const LENGTH = 64
const FINE_TUNING = [
  '--tasks',
  'MRPC',
  '--step',
  '2e-4',
  '--passes',
  '3',
  '--microbatch',
  '16',
  '--length',
  `${LENGTH}`
]

interface Pair {
  readonly first: string
  readonly second: string
  /** Twice the words that both have, of the words of both. */
  readonly share: number
}

/** `--pairs N`: of the task on plain text. */
export async function* bench(args: readonly string[]): AsyncGenerator<Row> {
  const count = pairsIn(args)
  const sentences = plainSentences()
  if (sentences === undefined) return
  const folder = mkdtempSync(join(tmpdir(), 'admb-pretraining-'))
  try {
    const [data, model, tokenizer] = ['pairs.jsonl', 'bert.yaml', 'tokenizer.json'].map(name => join(folder, name))
    writeFileSync(data, pairsOf(sentences, count).join(''))
    writeFileSync(model, JSON.stringify({ model: 'bert', width: 128, layers: 2 }))
    writeFileSync(tokenizer, JSON.stringify(trainTokenizer(sentences, 'wordpiece', PIECES)))
    const total = Math.ceil(count / BATCH)
    const training = [
      '--data',
      data,
      '--label',
      'share',
      '--target',
      'number',
      '--model',
      model,
      '--tokenizer',
      tokenizer
    ]
    training.push('--length', `${LENGTH}`, '--batch', `${BATCH}`, '--schedule', 'baseline-ag', '--microbatch', '16')
    training.push('--average', 'none', '--predict-with', 'current')
    training.push(
      '--rule',
      `adamw,step=1e-3,warmup=${Math.ceil(total / 20)},schedule=linear,total=${total},layerClip=1`
    )
    for (const [name, limit] of [
      ['from scratch', BATCH],
      ['pretrained', count]
    ] as const) {
      const [dir, weights] = ['model', 'bert'].map(kind => join(folder, `${kind} ${name}`))
      const rule = limit === count ? [] : ['--rule', 'adamw,step=1e-9']
      const { seconds } = await runAdmb<{ readonly seconds: number }>([
        'train',
        ...training,
        ...rule,
        '--limit',
        `${limit}`,
        '--dir',
        dir
      ])
      await runAdmb(['export', '--dir', dir, '--layout', 'bert', '--out', weights])
      for await (const row of glue(['--weights', weights, ...FINE_TUNING])) {
        // The other schedule computes the same bits.
        if (!row.name.endsWith('baseline-ag')) break
        yield { ...row, name: `${row.name}, ${name}`, details: { ...row.details, pretrainingSeconds: seconds } }
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function pairsIn(args: readonly string[]): number {
  const values = parseOptions(args)
  const count = Number(values.pairs ?? PAIRS)
  if (!(count > BATCH)) throw new UsageError(`--pairs ${values.pairs} is not a number above ${BATCH}`)
  return count
}

function parseOptions(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: { pairs: { type: 'string' } } }).values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** Sentences of 8 to 36 words of AG News and tinyshakespeare; undefined if a file is missing. */
function plainSentences(): string[] | undefined {
  const news = publicData('ag_news_test.csv.gz')
  const plays = shakespeare()
  if (news === undefined || plays === undefined) return undefined
  const descriptions = gunzipSync(readFileSync(news))
    .toString('utf8')
    .split('\n')
    .map(line => line.slice(1, -1).split('","')[2] ?? '')
  return [...descriptions, plays]
    .flatMap(text => text.replaceAll('\\', ' ').split(/(?<=[.!?;])\s+/))
    .map(sentence => sentence.split(/\s+/).filter(Boolean))
    .filter(({ length }) => length >= 8 && length <= 36)
    .map(words => words.join(' '))
}

/** Lines of JSON. */
function pairsOf(sentences: readonly string[], count: number): string[] {
  const random = new Random(1)
  const any = <T>(from: readonly T[]): T => from[random.below(from.length)]
  const words = sentences.flatMap(sentence => sentence.split(' '))
  const byName = new Map<string, string[]>()
  for (const sentence of sentences) {
    for (const name of namesIn(sentence)) {
      const known = byName.get(name)
      if (known === undefined) byName.set(name, [sentence])
      else known.push(sentence)
    }
  }
  return Array.from({ length: count }, () => {
    const sentence = any(sentences)
    const related = namesIn(sentence).flatMap(name => byName.get(name) ?? [])
    const other = random.uniform() < 0.7 && related.length > 0 ? any(related) : any(sentences)
    const [own, others] = [sentence, other].map(text => text.split(' '))
    const rate = 0.9 * random.uniform()
    const second = random.uniform() < 0.8 ? altered(own, others, words, rate, random) : others
    const [a, b] = random.uniform() < 0.5 ? [own, second] : [second, own]
    const pair: Pair = { first: a.join(' '), second: b.join(' '), share: share(a, b) }
    return `${JSON.stringify(pair)}\n`
  })
}

const namesIn = (sentence: string) => [...new Set(sentence.match(/\p{Lu}\p{Ll}{3,}/gu) ?? [])]

/** A copy with words that are left out, replaced and inserted, and in half of the cases with its parts exchanged. */
function altered(
  own: readonly string[],
  others: readonly string[],
  all: readonly string[],
  rate: number,
  random: Random
): readonly string[] {
  const any = (from: readonly string[]) => from[random.below(from.length)]
  const words: string[] = []
  for (let i = 0; i < own.length; i++) {
    const draw = random.uniform()
    if (draw < 0.4 * rate) i += random.below(3)
    else if (draw < 0.8 * rate) words.push(any(others))
    else if (draw < rate) words.push(any(all), own[i])
    else words.push(own[i])
  }
  if (words.length === 0) return own.slice(0, 3)
  const cut = random.uniform() < 0.5 ? random.below(words.length) : 0
  return [...words.slice(cut), ...words.slice(0, cut)]
}

function share(a: readonly string[], b: readonly string[]): number {
  const [first, second] = [a, b].map(words => words.map(word => word.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')))
  const left = new Map<string, number>()
  for (const word of first) left.set(word, (left.get(word) ?? 0) + 1)
  let both = 0
  for (const word of second) {
    const count = left.get(word) ?? 0
    if (count > 0) both++
    left.set(word, count - 1)
  }
  return Number(((2 * both) / (first.length + second.length)).toFixed(3))
}

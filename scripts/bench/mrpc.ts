/**
 * F1 by epoch on MRPC (figures 3 and 4 of Pudipeddi et al.): an encoder learns from AG News whether a description belongs to a title, and
 * is fine-tuned under each schedule. The argument is the SVG file of the curves.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { figureOf } from '../../sim/report/figures.js'
import { standalone } from '../../sim/report/theme.js'
import { Random } from '../../src/data/random.js'
import { publicData } from './data.js'
import { runAdmb } from './processes.js'
import type { Row } from './row.js'

const EPOCHS = 4
const MODEL = 'model: bert\nwidth: 32\nlayers: 1\nheads: 4\n'
/** Articles of AG News from which the encoder learns. */
const ARTICLES = 3000
const ROWS = ['--label', 'label', '--length', '48', '--average', 'none']

/** The paper's baseline has the batch that its devices could hold. */
const VARIANTS = [
  { name: 'baseline, batch 2', args: ['--schedule', 'baseline', '--batch', '2'] },
  { name: 'baseline with accumulation, batch 32', args: ['--schedule', 'baseline-ag,microbatch=8', '--batch', '32'] },
  { name: 'L2L, batch 32', args: ['--schedule', 'l2l-p,microbatch=8,stash=host', '--batch', '32'] }
]

interface Scores {
  readonly accuracy: number
  readonly metrics: { readonly byClass: readonly { readonly f1: number }[] }
}

export async function* bench(svg: string): AsyncGenerator<Row> {
  const paths = ['ag_news_test.csv.gz', 'msr_paraphrase_train.txt.gz', 'msr_paraphrase_test.txt.gz'].map(publicData)
  const [news, train, test] = paths
  if (news === undefined || train === undefined || test === undefined) return
  const dir = await mkdtemp(join(tmpdir(), 'admb-mrpc-'))
  const file = (name: string) => join(dir, name)
  try {
    await writeFile(file('model.yaml'), MODEL)
    await writeFile(file('news.csv'), headlines(await unzipped(news)))
    for (const [name, path] of [['train', train] as const, ['test', test] as const]) {
      await writeFile(file(`${name}.csv`), pairs(await unzipped(path)))
    }
    const from = ['--data', file('news.csv'), '--model', file('model.yaml'), '--tokenizer', 'wordpiece:4000']
    const how = ['--batch', '16', '--rule', 'adamw,step=1e-3', '--dir', file('news')]
    const { accuracy } = await runAdmb<{ accuracy: number }>(['train', ...from, ...ROWS, ...how])
    await runAdmb(['export', '--dir', file('news'), '--out', file('bert')])
    yield { name: 'AG News: a description belongs to a title', value: accuracy, unit: '' }
    const curves = await Promise.all(
      VARIANTS.map(async ({ args }, n) => {
        const scores: Scores[] = []
        for (let epoch = 0; epoch < EPOCHS; epoch++) {
          const start = ['--weights', file('bert'), ...ROWS, ...args, '--rule', 'adamw,step=3e-4']
          const data = ['--data', file('train.csv'), '--dir', file(`${n}`), '--shuffle-window', '5000']
          await runAdmb(['train', ...(epoch === 0 ? start : args.slice(0, 2)), ...data])
          scores.push(await runAdmb<Scores>(['eval', '--dir', file(`${n}`), '--data', file('test.csv')]))
        }
        return scores
      })
    )
    for (const [n, { name }] of VARIANTS.entries()) {
      const f1 = curves[n].map(f1Of)
      const details = { f1, accuracy: curves[n].map(scores => 100 * scores.accuracy) }
      yield { name: `MRPC, ${name}: F1 after ${EPOCHS} epochs`, value: f1[EPOCHS - 1], unit: '%', details }
    }
    await writeFile(svg, standalone(chart(curves)))
  } finally {
    await rm(dir, { recursive: true })
  }
}

/** F1 of the class of paraphrases, in percent. */
function f1Of({ metrics }: Scores): number {
  return 100 * metrics.byClass[1].f1
}

function chart(curves: readonly (readonly Scores[])[]): string {
  const rows = curves.flatMap((scores, n) =>
    scores.map((one, epoch) => {
      const value = f1Of(one)
      return { x: epoch + 1, run: VARIANTS[n].name, value, least: value, most: value }
    })
  )
  const title = 'F1 on MRPC by epoch'
  const epochs = Array.from({ length: EPOCHS }, (_, epoch) => epoch + 1)
  const about = { name: 'mrpc', title, caption: `${title}, on the test set.` }
  const axes = { x: { title: 'epoch', values: epochs, isLog: false }, y: { title: 'F1, %', isLog: false } }
  const names = VARIANTS.map(({ name }) => name)
  return figureOf({ ...about, ...axes }, rows, names, { marks: rows }).svg
}

async function unzipped(path: string): Promise<string> {
  return gunzipSync(await readFile(path)).toString('utf8')
}

/** Pairs in the format of the corpus. */
function pairs(text: string): string {
  const rows = text.trimEnd().split(/\r?\n/).slice(1)
  return table(rows.map(row => row.split('\t')).map(([same, , , a, b]) => [a, b, same === '1' ? 'same' : 'other']))
}

/** Each title with its own description, and with that of another article. */
function headlines(text: string): string {
  const random = new Random(1)
  const articles = [...text.matchAll(/^"\d","((?:[^"]|"")*)","((?:[^"]|"")*)"\r?$/gm)].map(match =>
    match.slice(1, 3).map(field => field.replaceAll('""', '"'))
  )
  return table(
    articles.slice(0, ARTICLES).flatMap(([title, description]) => [
      [title, description, 'same'],
      [title, articles[random.below(articles.length)][1], 'other']
    ])
  )
}

function table(rows: readonly (readonly string[])[]): string {
  const lines = [['first', 'second', 'label'], ...rows]
  return lines.map(row => `${row.map(field => `"${field.replaceAll('"', '""')}"`).join(',')}\n`).join('')
}

/** The tasks of GLUE (Wang et al., 2018): their files, columns and metrics. Rows are lines of fields separated by tabs, without quoting. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type Metric, metrics } from './metrics.js'

export interface GlueTask {
  readonly name: string
  /** Of the training rows and of the labelled rows that are scored, without `.gz`; the first pair that exists is read. */
  readonly files: readonly (readonly [train: string, scored: string])[]
  /** Names in the first line, or positions of a file without one. */
  readonly label: string | number
  readonly texts: readonly (string | number)[]
  readonly metrics: readonly Metric[]
  /** Names of the classes; undefined for a number. The second is the positive one of F1. */
  readonly classes: readonly string[] | undefined
}

export interface GlueRow {
  readonly label: string
  readonly first: string
  readonly second?: string
}

export class GlueError extends Error {}

const { accuracy, f1, matthews, pearson, spearman } = metrics
const standard = (folder: string, scored = 'dev.tsv') => [`${folder}/train.tsv`, `${folder}/${scored}`] as const
const entailment = ['entailment', 'not_entailment']
const pair = ['sentence1', 'sentence2']

export const glueTasks: readonly GlueTask[] = [
  {
    name: 'CoLA',
    files: [standard('CoLA')],
    label: 1,
    texts: [3],
    metrics: [matthews],
    classes: ['0', '1']
  },
  {
    name: 'SST-2',
    files: [standard('SST-2')],
    label: 'label',
    texts: ['sentence'],
    metrics: [accuracy],
    classes: ['0', '1']
  },
  {
    name: 'MRPC',
    files: [
      standard('MRPC'),
      ['MRPC/msr_paraphrase_train.txt', 'MRPC/msr_paraphrase_test.txt'],
      ['msr_paraphrase_train.txt', 'msr_paraphrase_test.txt']
    ],
    label: 'Quality',
    texts: ['#1 String', '#2 String'],
    metrics: [f1, accuracy],
    classes: ['0', '1']
  },
  {
    name: 'STS-B',
    files: [standard('STS-B')],
    label: 'score',
    texts: pair,
    metrics: [pearson, spearman],
    classes: undefined
  },
  {
    name: 'QQP',
    files: [standard('QQP')],
    label: 'is_duplicate',
    texts: ['question1', 'question2'],
    metrics: [f1, accuracy],
    classes: ['0', '1']
  },
  {
    name: 'MNLI',
    files: [standard('MNLI', 'dev_matched.tsv')],
    label: 'gold_label',
    texts: pair,
    metrics: [accuracy],
    classes: ['contradiction', 'entailment', 'neutral']
  },
  {
    name: 'QNLI',
    files: [standard('QNLI')],
    label: 'label',
    texts: ['question', 'sentence'],
    metrics: [accuracy],
    classes: entailment
  },
  { name: 'RTE', files: [standard('RTE')], label: 'label', texts: pair, metrics: [accuracy], classes: entailment },
  { name: 'WNLI', files: [standard('WNLI')], label: 'label', texts: pair, metrics: [accuracy], classes: ['0', '1'] }
]

/**
 * The rows of a task.
 * @returns undefined if the folder has none of its files
 * @throws GlueError for a file without the columns, or a row of another class
 */
export function readTask(
  task: GlueTask,
  folder: string
): { readonly train: readonly GlueRow[]; readonly scored: readonly GlueRow[] } | undefined {
  for (const names of task.files) {
    const [train, scored] = names.map(name =>
      [join(folder, name), join(folder, `${name}.gz`)].find(path => existsSync(path))
    )
    if (train !== undefined && scored !== undefined)
      return { train: readRows(task, train), scored: readRows(task, scored) }
  }
  return undefined
}

function readRows({ label, texts, classes }: GlueTask, file: string): GlueRow[] {
  const bytes = readFileSync(file)
  const content = (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8').replace(/^\uFEFF/, '')
  const lines = content.split(/\r?\n/).filter(line => line !== '')
  const header = typeof label === 'string' ? lines.shift()?.split('\t') : undefined
  const columns = [label, ...texts].map(column => {
    const position = typeof column === 'number' ? column : (header?.indexOf(column) ?? -1)
    if (position < 0) throw new GlueError(`${file} has no column '${column}'`)
    return position
  })
  return lines.map((line, i): GlueRow => {
    const fields = line.split('\t')
    const [given, first, second] = columns.map(column => fields[column])
    const isKnown = classes === undefined ? Number.isFinite(Number.parseFloat(given)) : classes.includes(given)
    if (!isKnown || first === undefined || columns.length - 1 > (second === undefined ? 1 : 2)) {
      const number = i + (header === undefined ? 1 : 2)
      throw new GlueError(
        `${file}:${number}: expected ${columns.length} columns with a label (${classes ?? 'a number'})`
      )
    }
    return second === undefined ? { label: given, first } : { label: given, first, second }
  })
}

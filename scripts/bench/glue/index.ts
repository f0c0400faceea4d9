/**
 * Fine-tunes a checkpoint of BERT on the tasks of GLUE whose files there are, conventionally and layer to layer, by the command
 * line: the form of table 3 of Pudipeddi et al.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { DATA_FOLDER } from '../data.js'
import { admbLines, runAdmb } from '../processes.js'
import type { Row } from '../row.js'
import { UsageError } from '../usage.js'
import { writeEncoder } from './encoder.js'
import { GlueError, type GlueRow, type GlueTask, glueTasks, readTask } from './tasks.js'

interface Trained {
  readonly seconds: number
  readonly relay: { readonly stepMs: number; readonly devicePeakBytes: number }
}

interface Predicted {
  readonly label?: string
  readonly scores?: readonly number[]
  readonly command?: string
}

const USAGE = `npm run -s bench -- glue --weights FOLDER [--data FOLDER] [--tasks MRPC,RTE] [--step 2e-5] [--passes 3] [--batch 32]
                         [--microbatch 4] [--length 128] [--limit ROWS] [--json]`

export async function* bench(args: readonly string[]): AsyncGenerator<Row> {
  const options = optionsOf(args)
  const folder = mkdtempSync(join(tmpdir(), 'admb-glue-'))
  try {
    const encoder = join(folder, 'encoder')
    writeEncoder(options.weights, encoder)
    for (const task of options.tasks) {
      const rows = readTask(task, options.data)
      if (rows !== undefined)
        yield* results(task, rows, { ...options, folder: mkdtempSync(join(folder, 'task-')), encoder })
      else process.stderr.write(`bench: ${task.name} skipped, because ${options.data} has no ${task.files[0][0]}\n`)
    }
  } catch (error) {
    throw error instanceof GlueError ? new UsageError(error.message) : error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Options {
  readonly weights: string
  readonly data: string
  readonly tasks: readonly GlueTask[]
  readonly step: string
  readonly passes: number
  readonly batch: number
  readonly microbatch: string
  readonly length: string
  readonly limit: number
}

function optionsOf(args: readonly string[]): Options {
  const values = valuesOf(args)
  const { weights, data, step, microbatch, length } = values
  if (weights === undefined) throw new UsageError(`glue needs --weights, a folder of BERT: ${USAGE}`)
  const names = values.tasks?.split(',')
  const unknown = names?.find(name => !glueTasks.some(task => task.name === name))
  if (unknown !== undefined) {
    throw new UsageError(`--tasks ${unknown} is not one of ${glueTasks.map(({ name }) => name).join(', ')}`)
  }
  const [passes, batch, limit] = (['passes', 'batch', 'limit'] as const).map(name => {
    const value = values[name] === undefined ? Number.POSITIVE_INFINITY : Number(values[name])
    if (!(value >= 1)) throw new UsageError(`--${name} ${values[name]} is not a number of at least 1`)
    return value
  })
  const tasks = glueTasks.filter(({ name }) => names?.includes(name) ?? true)
  return { weights, data, tasks, step, passes, batch, microbatch, length, limit }
}

function valuesOf(args: readonly string[]) {
  const text = (value: string) => ({ type: 'string', default: value }) as const
  try {
    return parseArgs({
      args: [...args],
      options: {
        weights: { type: 'string' },
        data: text(fileURLToPath(DATA_FOLDER)),
        tasks: { type: 'string' },
        step: text('2e-5'),
        passes: text('3'),
        batch: text('32'),
        microbatch: text('4'),
        length: text('128'),
        limit: { type: 'string' }
      }
    }).values
  } catch (error) {
    throw new UsageError(`${(error as Error).message}: ${USAGE}`)
  }
}

async function* results(
  task: GlueTask,
  { train, scored }: { readonly train: readonly GlueRow[]; readonly scored: readonly GlueRow[] },
  { folder, encoder, step, passes, batch, microbatch, length, limit }: Options & Record<'folder' | 'encoder', string>
): AsyncGenerator<Row> {
  const [trained, rows] = [train, scored].map(of => of.slice(0, limit))
  const [trainFile, scoredFile] = [trained, rows].map((of, i) => {
    const file = join(folder, `${i}.jsonl`)
    writeFileSync(file, of.map(row => `${JSON.stringify(row)}\n`).join(''))
    return file
  })
  const total = Math.ceil(trained.length / batch) * passes
  const rule = `adamw,step=${step},schedule=linear,warmup=${Math.floor(total / 10)},total=${total},layerClip=1`
  const target = task.classes === undefined ? ['--target', 'number'] : ['--class-names', task.classes.join(',')]
  const common = ['--weights', encoder, '--data', trainFile, '--label', 'label', ...target, '--length', length]
  common.push('--rule', rule, '--batch', `${batch}`, '--passes', `${passes}`, '--shuffle-window', '10000')
  common.push('--average', 'none', '--predict-with', 'current')
  const schedules = {
    'baseline-ag': ['--schedule', 'baseline-ag', '--microbatch', microbatch],
    'l2l-p, stash on the host': ['--schedule', 'l2l-p', '--microbatch', microbatch, '--stash', 'host']
  }
  for (const [schedule, flags] of Object.entries(schedules)) {
    const dir = mkdtempSync(join(folder, 'model-'))
    const { relay, seconds } = await runAdmb<Trained>(['train', ...common, ...flags, '--dir', dir])
    const lines = await admbLines<Predicted>(['predict', '--dir', dir, '--data', scoredFile, '--label', 'label'])
    const predicted = lines.filter(({ command }) => command === undefined)
    const answers = predicted.map(({ label, scores }) => label ?? String(scores?.[0]))
    const labels = rows.map(({ label }) => label)
    if (answers.length !== labels.length) throw new Error(`${answers.length} predictions of ${labels.length} rows`)
    const details = {
      deviceMB: relay.devicePeakBytes / 1e6,
      trained: trained.length,
      scored: rows.length,
      seconds,
      stepMs: relay.stepMs
    }
    for (const metric of task.metrics) {
      const value = 100 * metric.of(labels, answers, task.classes)
      yield { name: `${task.name}, ${metric.name}: ${schedule}`, value, unit: '%', details }
    }
  }
}

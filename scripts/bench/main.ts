/** `npm run -s bench -- NAME [ARGUMENT] [--json]`, or `train --vw PATH`: runs one benchmark and prints each row when it is measured. */
import { parseArgs } from 'node:util'
import { met, type Row } from './row.js'
import { besideVw } from './vowpal-wabbit.js'

const benches: Readonly<Record<string, () => Promise<{ bench(argument: string): AsyncIterable<Row> }>>> = {
  train: () => import('./train.js'),
  threads: () => import('./threads.js'),
  startup: () => import('./startup.js'),
  cluster: () => import('./cluster.js'),
  l2l: () => import('./l2l.js'),
  'l2l-tables': () => import('./l2l-tables.js'),
  pipelines: () => import('./pipelines.js'),
  stages: () => import('./stages.js'),
  mrpc: () => import('./mrpc.js'),
  tensor: () => import('./tensor.js'),
  gradients: () => import('./gradients.js'),
  sim: () => import('./sim.js'),
  trust: () => import('./trust.js'),
  bytes: () => import('./bytes.js'),
  sparse: () => import('./sparse.js'),
  beside: () => import('./beside.js'),
  gossipy: () => import('./gossipy.js'),
  streams: () => import('./streams.js'),
  schedule: () => import('./schedule.js'),
  loopback: () => import('./loopback.js')
}

/** Arguments that a benchmark needs. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  'l2l-tables': 'WIDTH|bert-large',
  mrpc: 'SVG',
  gradients: 'TEXT',
  beside: 'DIR',
  gossipy: 'PYTHON',
  streams: 'PYTHON'
}

function print(row: Row, json: boolean): void {
  const enough = met(row)
  if (json) return void process.stdout.write(`${JSON.stringify({ ...row, met: enough })}\n`)
  const { name, value, unit, target, details = {} } = row
  const limit = target === undefined ? '' : 'min' in target ? `≥ ${format(target.min)}` : `≤ ${format(target.max)}`
  const verdict = enough === undefined ? '' : enough ? 'met' : 'MISSED'
  const rest = Object.entries(details).map(
    ([key, given]) => `${key} ${typeof given === 'string' ? given : [given].flat().map(format).join(' ')}`
  )
  const columns = [name.padEnd(72), `${format(value)} ${unit}`.padEnd(24), limit.padEnd(14), verdict.padEnd(7)]
  process.stdout.write(`${columns.join('')}${rest.join(', ')}\n`)
}

function format(value: number): string {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 5 })
}

const { values, positionals } = parseArgs({
  options: { json: { type: 'boolean', default: false }, vw: { type: 'string' } },
  allowPositionals: true
})
const [name, ...args] = positionals
const { json, vw } = values
const isKnown = name !== undefined && Object.hasOwn(benches, name) && (vw === undefined || name === 'train')
if (isKnown && args.length === (name in ARGUMENTS ? 1 : 0)) {
  const rows = vw === undefined ? (await benches[name]()).bench(args[0]) : besideVw(vw)
  for await (const row of rows) print(row, json)
} else {
  const names = Object.keys(benches).map(each => [each, ARGUMENTS[each]].filter(Boolean).join(' '))
  process.stderr.write(`bench: expected one of ${names.join(', ')} or train --vw PATH, and optionally --json\n`)
  process.exitCode = 2
}

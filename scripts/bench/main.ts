/** `npm run -s bench -- NAME [--json]`: runs one benchmark and prints each row when it is measured. */
import { met, type Row } from './row.js'
import { UsageError } from './usage.js'

const benches: Readonly<Record<string, () => Promise<{ bench(args: readonly string[]): AsyncIterable<Row> }>>> = {
  train: () => import('./train.js'),
  exchange: () => import('./exchange.js'),
  startup: () => import('./startup.js'),
  cluster: () => import('./cluster.js'),
  l2l: () => import('./l2l.js'),
  'l2l-billion': () => import('./l2l-billion.js'),
  'l2l-workers': () => import('./l2l-workers.js'),
  'l2l-store': () => import('./l2l-store.js'),
  'l2l-split': () => import('./l2l-split.js'),
  'l2l-delay': () => import('./l2l-delay.js'),
  'l2l-data': () => import('./l2l-data.js'),
  'scaled-steps': () => import('./scaled-steps.js'),
  glue: () => import('./glue/index.js'),
  pretraining: () => import('./pretraining.js'),
  sim: () => import('./sim.js'),
  batch: () => import('./batch.js'),
  period: () => import('./period.js'),
  steps: () => import('./steps.js'),
  churn: () => import('./churn.js'),
  tabs: () => import('./tabs.js'),
  drift: () => import('./drift.js'),
  trust: () => import('./trust.js'),
  signatures: () => import('./signatures.js'),
  bytes: () => import('./bytes.js'),
  gpt: () => import('./gpt.js'),
  wholes: () => import('./wholes.js'),
  sparse: () => import('./sparse.js'),
  codec: () => import('./codec.js'),
  rules: () => import('./rules.js')
}

function print(row: Row, json: boolean): void {
  const enough = met(row)
  if (json) return void process.stdout.write(`${JSON.stringify({ ...row, met: enough })}\n`)
  const { name, value, unit, target, details = {} } = row
  const limit = target === undefined ? '' : 'least' in target ? `≥ ${format(target.least)}` : `≤ ${format(target.most)}`
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

const [name, ...args] = process.argv.slice(2).filter(arg => arg !== '--json')
try {
  const known = `expected one of ${Object.keys(benches).join(', ')}, and optionally --json`
  if (name === undefined) throw new UsageError(`no benchmark given; ${known}`)
  if (!Object.hasOwn(benches, name)) throw new UsageError(`unknown benchmark '${name}'; ${known}`)
  const { bench } = await benches[name]()
  if (args.length > 0 && bench.length === 0) throw new UsageError(`${name} has no options: omit ${args.join(' ')}`)
  for await (const row of bench(args)) print(row, process.argv.includes('--json'))
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`bench: ${error.message}\n`)
  process.exitCode = 2
}

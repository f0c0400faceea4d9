/** `npm run -s bench -- NAME [--json]`: runs one benchmark and prints each row when it is measured. */
import { met, type Row } from './row.js'

const benches: Readonly<Record<string, () => Promise<{ bench(): AsyncIterable<Row> }>>> = {
  train: () => import('./train.js'),
  exchange: () => import('./exchange.js'),
  startup: () => import('./startup.js'),
  cluster: () => import('./cluster.js'),
  l2l: () => import('./l2l.js'),
  'l2l-billion': () => import('./l2l-billion.js'),
  'l2l-workers': () => import('./l2l-workers.js'),
  'l2l-store': () => import('./l2l-store.js'),
  'l2l-data': () => import('./l2l-data.js'),
  sim: () => import('./sim.js'),
  batch: () => import('./batch.js'),
  steps: () => import('./steps.js'),
  churn: () => import('./churn.js'),
  drift: () => import('./drift.js'),
  trust: () => import('./trust.js'),
  signatures: () => import('./signatures.js'),
  bytes: () => import('./bytes.js'),
  sparse: () => import('./sparse.js'),
  codec: () => import('./codec.js')
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

const args = process.argv.slice(2)
const names = args.filter(arg => arg !== '--json')
const [name] = names
if (names.length !== 1 || !Object.hasOwn(benches, name)) {
  const problem = names.length === 0 ? 'no benchmark given' : `unknown benchmark '${names.join(' ')}'`
  process.stderr.write(`bench: ${problem}; expected one of ${Object.keys(benches).join(', ')}, and optionally --json\n`)
  process.exitCode = 2
} else {
  const { bench } = await benches[name]()
  for await (const row of bench()) print(row, args.includes('--json'))
}

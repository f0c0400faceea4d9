/** `npm run -s bench -- NAME [--json]`: runs one benchmark and prints its rows as they come. */
import { met, type Row } from './row.js'

const benches: Readonly<Record<string, () => Promise<{ bench(): AsyncIterable<Row> }>>> = {
  train: () => import('./train.js'),
  exchange: () => import('./exchange.js'),
  startup: () => import('./startup.js'),
  cluster: () => import('./cluster.js'),
  l2l: () => import('./l2l.js'),
  'l2l-billion': () => import('./l2l-billion.js'),
  'l2l-workers': () => import('./l2l-workers.js'),
  'l2l-data': () => import('./l2l-data.js'),
  sim: () => import('./sim.js')
}

function print(row: Row, json: boolean): void {
  const enough = met(row)
  if (json) return void process.stdout.write(`${JSON.stringify({ ...row, met: enough })}\n`)
  const { name, value, unit, target, details = {} } = row
  const goal = target === undefined ? '' : 'least' in target ? `≥ ${format(target.least)}` : `≤ ${format(target.most)}`
  const verdict = enough === undefined ? '' : enough ? 'met' : 'MISSED'
  const rest = Object.entries(details).map(
    ([key, given]) => `${key} ${typeof given === 'string' ? given : [given].flat().map(format).join(' ')}`
  )
  const columns = [name.padEnd(72), `${format(value)} ${unit}`.padEnd(24), goal.padEnd(14), verdict.padEnd(7)]
  process.stdout.write(`${columns.join('')}${rest.join(', ')}\n`)
}

function format(value: number): string {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 5 })
}

const words = process.argv.slice(2)
const names = words.filter(word => word !== '--json')
const [name] = names
if (names.length !== 1 || !Object.hasOwn(benches, name)) {
  const what = names.length === 0 ? 'no benchmark named' : `no benchmark ${names.join(' ')}`
  process.stderr.write(`bench: ${what}: give one of ${Object.keys(benches).join(', ')}, and --json for JSON lines\n`)
  process.exitCode = 2
} else {
  const { bench } = await benches[name]()
  for await (const row of bench()) print(row, words.includes('--json'))
}

/**
 * `npm run soak -- --connections N --seconds S --seed K [--default-limits] [--json]`: attacks a peer in a separate process
 * with hostile connections and frames, and prints a row for each kind. The exit code is 1 if the peer died, a neighbour lost
 * its session, or memory was not released.
 */
import { parseArgs } from 'node:util'
import { type SoakRow, soak } from './soak.js'

const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '120' },
    seed: { type: 'string', default: '1' },
    'default-limits': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false }
  }
})

const columns: readonly (keyof SoakRow)[] = [
  'mode',
  'phase',
  'count',
  'perSecond',
  'rssMiB',
  'heapMiB',
  'handles',
  'connections',
  'sessions'
]

function line(texts: readonly string[]): string {
  return texts.map((text, i) => (i === 1 ? text.padEnd(40) : text.padEnd(13))).join('')
}

function print(row: SoakRow): void {
  const cells = columns.map(key => row[key] ?? '').map(cell => (typeof cell === 'number' ? cell.toFixed() : cell))
  const text = values.json ? JSON.stringify(row) : `${line(cells)}${row.fault ?? ''}`
  process.stdout.write(`${text}\n`)
}

if (!values.json) process.stdout.write(`${line(columns)}\n`)
const [connections, seconds, seed] = [values.connections, values.seconds, values.seed].map(Number)
let total = 0
for await (const row of soak({ connections, seconds, seed, defaultLimits: values['default-limits'] })) {
  print(row)
  total += row.count
  if (row.fault !== undefined) process.exitCode = 1
}
if (!values.json) process.stdout.write(`${total} connections, frames and requests\n`)
// Aborted attacks leave timers and sockets behind in this process.
process.exit()

/**
 * `npm run gpu-report`: runs tests and benchmarks on a GPU within a few minutes, writes one JSON file and prints a table. A part
 * that fails, or exceeds its time, is recorded and does not end the others.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { allParts, type Shared } from './all-parts.js'
import { describeMachine } from './machine.js'
import { type Options, parseOptions, USAGE, UsageError } from './options.js'
import { runParts } from './parts.js'
import { type Report, tableOf } from './report.js'

const PACKAGE = new URL('../../../package.json', import.meta.url)

async function report(options: Options): Promise<Report> {
  const { minutes, size, parts: names } = options
  const shared: Shared = { device: undefined, plan: undefined }
  const all = allParts(options, shared)
  const unknown = names?.find(name => !all.some(part => part.name === name))
  if (unknown !== undefined) {
    throw new UsageError(`--parts ${unknown} is not one of ${all.map(({ name }) => `'${name}'`).join(', ')}`)
  }
  const start = performance.now()
  const machine = await describeMachine()
  // All others need the device.
  const chosen = all.filter(({ name }) => names === undefined || name === 'device' || names.includes(name))
  const parts = await runParts(chosen, 60_000 * minutes, ({ name, status, seconds, error }) => {
    const why = error === undefined ? '' : ` (${error})`
    process.stderr.write(`${name}: ${status} after ${seconds.toFixed(1)} s${why}\n`)
  })
  const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string }
  const seconds = (performance.now() - start) / 1000
  const date = new Date().toISOString()
  return { format: 1, version, date, size, minutes, seconds, machine, device: shared.device, parts }
}

try {
  const options = parseOptions(process.argv.slice(2))
  const made = await report(options)
  writeFileSync(options.out, `${JSON.stringify(made, null, 2)}\n`)
  process.stdout.write(`${tableOf(made)}\n\nwritten to ${options.out}\n`)
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`gpu-report: ${error.message}\n${USAGE}\n`)
  process.exitCode = 2
}

/**
 * `npm run nemesis -- --minutes N --seed S [--rounds N] [--peers N] [--models 300,1M] [--nemeses partition,kill] [--lines lan]
 * [--sums lattice] [--algorithm mawo] [--batch N] [--trust bounded] [--seconds MIN,MAX] [--episode N] [--logs DIR] [--json]`: injects faults into networks of real peers in
 * namespaces of their own, and prints a row for each round. The exit code is 1 if something did not hold, 3 if namespaces are not
 * allowed here.
 */
import { parseArgs } from 'node:util'
import { campaign, type Round } from './campaign.js'
import { insideNamespaces } from './lab.js'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '1000000' },
    peers: { type: 'string', default: '6' },
    models: { type: 'string' },
    nemeses: { type: 'string' },
    lines: { type: 'string' },
    sums: { type: 'string', default: 'lattice' },
    trust: { type: 'string', default: 'members' },
    algorithm: { type: 'string', default: 'admb' },
    batch: { type: 'string' },
    seconds: { type: 'string', default: '3,8' },
    episode: { type: 'string', default: '18' },
    logs: { type: 'string' },
    json: { type: 'boolean', default: false }
  }
})

const widths = [6, 6, 5, 20, 7, 6, 10, 7, 11, 10, 6]
const header = ['round', 'model', 'line', 'nemesis', 'fault', 'links', 'agreement', 'bound', 'memory', 'state', 'loss']

function format(cells: readonly string[], failures: readonly string[] = []): string {
  return [...cells.map((cell, i) => cell.padEnd(widths[i])), ...failures].join(' ').trimEnd()
}

function describe(round: Round): string {
  const [fault, ...times] = [round.seconds, round.agreement, round.bound].map(time => `${time.toFixed(1)} s`)
  const what = [`${round.number}`, round.model, round.line, round.nemesis, fault, `${round.lostLinks}`]
  const sizes = [`${round.memory.toFixed(0)} MB`, `${round.state.toFixed(1)} MB`]
  return format([...what, ...times, ...sizes, round.loss?.toFixed(2) ?? '–'], round.failures)
}

async function run(): Promise<void> {
  const list = (text: string | undefined) => text?.split(',')
  const [seconds, longest] = values.seconds.split(',').map(Number)
  const options = {
    seed: Number(values.seed),
    rounds: Number(values.rounds),
    minutes: Number(values.minutes),
    peers: Number(values.peers),
    models: list(values.models),
    nemeses: list(values.nemeses),
    lines: list(values.lines),
    sums: values.sums,
    trust: values.trust,
    algorithm: values.algorithm,
    batch: values.batch === undefined ? undefined : Number(values.batch),
    seconds: [seconds, longest ?? seconds] as const,
    episode: Number(values.episode),
    logs: values.logs
  }
  if (!values.json) process.stdout.write(`${format(header)}\n`)
  const rounds: Round[] = []
  for await (const round of campaign(options)) {
    rounds.push(round)
    process.stdout.write(`${values.json ? JSON.stringify(round) : describe(round)}\n`)
    if (round.failures.length > 0) process.exitCode = 1
  }
  if (values.json) return
  const times = rounds.map(round => round.agreement).sort((a, b) => a - b)
  const failed = rounds.filter(round => round.failures.length > 0).length
  const median = times[Math.floor(times.length / 2)]?.toFixed(1)
  process.stdout.write(
    `${rounds.length} rounds, ${failed} failed; agreement after ${median} s (median), ${times.at(-1)?.toFixed(1)} s (longest)\n`
  )
}

await insideNamespaces(run)

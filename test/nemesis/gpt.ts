/**
 * `node dist/test/nemesis/gpt.js --python PYTHON --data TEXT.gz [--seconds 600] [--kill 120] [--away 30]`: four peers, each with a
 * program in PyTorch, learn a GPT over lines of 20 Mbit/s with a round trip of 80 ms. In turn, one of them and its program are
 * killed, and return. It prints a JSON object: the utilisation of compute, the losses, and what `admb audit` says.
 * Options of `scripts/reference/gpt.py` follow `--`.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { addressOf, commandAt, insideNamespaces, Lab } from './lab.js'

const MAIN = fileURLToPath(new URL('../../program/admb.js', import.meta.url))
const PROGRAM = 'scripts/reference/gpt.py'
const LINE = { delay: 40, rate: 20e6 / 8 }

const { values, positionals: gpt } = parseArgs({
  options: {
    python: { type: 'string', default: 'python3' },
    data: { type: 'string' },
    seconds: { type: 'string', default: '600' },
    kill: { type: 'string', default: '120' },
    away: { type: 'string', default: '30' },
    peers: { type: 'string', default: '4' },
    'local-steps': { type: 'string', default: '10' },
    rows: { type: 'string', default: '4' },
    logs: { type: 'string' }
  },
  allowPositionals: true
})
const folder = values.logs ?? mkdtempSync(join(tmpdir(), 'admb-gpt-'))
const [sites, steps, rows] = [values.peers, values['local-steps'], values.rows].map(Number)

/** A line of the log of a program. */
interface Entry {
  readonly kind: 'steps' | 'end' | 'lost'
  readonly seconds: number
  readonly computing: number
  readonly steps: number
  readonly weights: number
  readonly updates: number
  readonly digest: string
  readonly loss: number
  readonly inputs: number
}

/** A peer and its program. */
class Site {
  readonly #number: number
  readonly #log: string
  peer: ChildProcess | undefined
  program: ChildProcess | undefined
  /** Number of the current run of the program. */
  run = 0

  constructor(number: number) {
    this.#number = number
    this.#log = join(folder, `peer-${number}.log`)
  }

  get dir(): string {
    return join(folder, `state-${this.#number}`)
  }

  /** The address of the peer, as soon as it is known. */
  get address(): string | undefined {
    const [id] = (existsSync(this.#log) && /(?<=^peer )12D3\w+/m.exec(readFileSync(this.#log, 'utf8'))) || []
    return id && `/ip4/${addressOf(this.#number)}/tcp/4280/p2p/${id}`
  }

  /** The log of a run. */
  entries(run: number): Entry[] {
    const path = join(folder, `program-${this.#number}-${run}.jsonl`)
    if (!existsSync(path)) return []
    return readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line) as Entry)
  }

  start(others: readonly string[]): void {
    this.run++
    const socket = `${this.dir}.sock`
    const places = others.flatMap(address => ['--peer', address])
    const listen = `/ip4/${addressOf(this.#number)}/tcp/4280`
    const learner = ['--learner', `external,socket=${socket}`, '--dir', this.dir, '--listen', listen, '--keep-journal']
    const task = [
      '--batch',
      `${sites * steps * rows}`,
      '--local-steps',
      `${steps}`,
      '--average',
      'none',
      '--http',
      'off'
    ]
    const log = openSync(this.#log, 'a')
    const command = commandAt(this.#number, [process.execPath, MAIN, 'peer', ...learner, ...task, ...places])
    this.peer = spawn(command[0], command.slice(1), { stdio: ['ignore', log, log] })
    const own = ['--site', `${this.#number}`, '--sites', `${sites}`, '--socket', socket]
    const file = ['--log', join(folder, `program-${this.#number}-${this.run}.jsonl`)]
    this.program = spawn(values.python, [PROGRAM, 'learn', ...common, ...own, ...file], { stdio: ['ignore', log, log] })
  }

  kill(): void {
    this.program?.kill('SIGKILL')
    this.peer?.kill('SIGKILL')
  }

  async end(): Promise<void> {
    const { program, peer } = this
    if (program?.exitCode === null && program.signalCode === null) await once(program, 'exit')
    peer?.kill('SIGTERM')
    if (peer?.exitCode === null && peer.signalCode === null) await once(peer, 'exit')
  }
}

const common = ['--data', values.data ?? '', '--local-steps', `${steps}`, '--rows', `${rows}`, ...gpt]

/** What one process learns from as many inputs. */
function alone(inputs: number, size: number): Pick<Entry, 'loss' | 'seconds'> {
  const own = ['--inputs', `${inputs}`, '--rows', `${size}`, '--threads', '2']
  const { stdout } = spawnSync(values.python, [PROGRAM, 'alone', ...common, ...own], { encoding: 'utf8' })
  return JSON.parse(stdout) as Entry
}

async function run(): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const lab = await Lab.create(sites, LINE, 1)
  const all = Array.from({ length: sites }, (_, number) => new Site(number))
  for (const site of all) {
    site.start(all.flatMap(({ address }) => address ?? []))
    while (all[0].address === undefined) await sleep(200)
  }
  while (!all.every(site => site.entries(site.run).length > 0)) await sleep(500)
  const end = Date.now() + 1000 * Number(values.seconds)
  let kills = 0
  while (Date.now() < end) {
    await sleep(Math.min(1000 * Number(values.kill), Math.max(0, end - Date.now())))
    if (end - Date.now() < 2000 * Number(values.away)) continue
    const site = all[(1 + kills++) % sites]
    site.kill()
    await sleep(1000 * Number(values.away))
    site.start(all.flatMap(other => (other === site ? [] : (other.address ?? []))))
  }
  for (const { program } of all) program?.kill('SIGTERM')
  await Promise.all(all.map(site => site.end()))
  lab.stop()
  const dirs = all.flatMap(({ dir }) => ['--dir', dir])
  const audit = spawnSync(process.execPath, [MAIN, 'audit', ...dirs, '--json'], { encoding: 'utf8' })
  const runs = all.flatMap(site => Array.from({ length: site.run }, (_, i) => site.entries(i + 1)))
  const last = runs
    .map(entries => entries.filter(({ kind }) => kind === 'steps').at(-1))
    .filter(one => one !== undefined)
  const [seconds, computing] = [sum(last.map(one => one.seconds)), sum(last.map(one => one.computing))]
  const ends = all.flatMap(site => site.entries(site.run).filter(({ kind }) => kind === 'end'))
  const inputs = sum(ends.map(one => one.inputs))
  const result = {
    weights: last[0]?.weights,
    kills,
    updates: ends.map(one => one.updates),
    digests: new Set(ends.map(one => one.digest)).size,
    inputs,
    steps: sum(last.map(one => one.steps)),
    utilisation: computing / seconds,
    loss: ends[0]?.loss,
    audit: { code: audit.status, ...(JSON.parse(audit.stdout || '{}') as object) }
  }
  process.stdout.write(`${JSON.stringify(result)}\n`)
  for (const size of [sites * rows, rows])
    process.stdout.write(`${JSON.stringify({ rows: size, ...alone(inputs, size) })}\n`)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

await insideNamespaces(run)

/**
 * `npm run mutation -- [--files GLOB] [--sample N] [--seed S] [--trials N] [--limit MS] [--only FILE]`: switches mutants of `src/admb/core`
 * and `src/overlay` on, one after the other, and runs simulated trials and tests until one fails. Prints a table and the survivors;
 * results are in `dist/mutation.json`. `--sample` draws mutants, in each file in proportion; `--limit` leaves out steps that
 * take longer; `--only` takes the survivors of another result file.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Random } from '../../sim/engine/random.js'
import { createCopy, removeMutants } from '../../test/support/mutants.js'
import { instrument, type Mutant } from './instrument.js'
import type { Kind, Measured, Report, Request, RunnerOptions } from './mutation-runner.js'

const { values } = parseArgs({
  options: {
    files: { type: 'string', default: 'src/{admb/core,overlay}/*.ts' },
    sample: { type: 'string', default: 'Infinity' },
    seed: { type: 'string', default: '1' },
    trials: { type: 'string', default: '150' },
    limit: { type: 'string', default: '2000' },
    only: { type: 'string' },
    out: { type: 'string', default: 'dist/mutation.json' }
  }
})

type Verdict = Kind | 'time' | 'survived' | 'not covered'

interface Result extends Mutant {
  readonly verdict: Verdict
  /** What killed it. */
  readonly by?: string
}

/** A step may take this many times as long as without a mutant, and a second more for each of its own. */
const SLOWER = 10
const SPARE_MS = 5000

/** The process that runs mutants. */
class Runner {
  readonly #child: ChildProcess
  readonly #pending: ((report: Report | 'ended' | 'late') => void)[] = []
  #timer: NodeJS.Timeout | undefined

  /** @param limit of the time of a step, in ms */
  constructor(
    options: RunnerOptions,
    readonly limit: (step: number) => number
  ) {
    const script = resolve('dist/scripts/testing/mutation-runner.js')
    const execArgv = ['--max-old-space-size=1024']
    this.#child = fork(script, [JSON.stringify(options)], { execArgv, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    this.#child.stderr?.on('data', (text: Buffer) => this.errors.push(text.toString()))
    this.#child.on('message', (report: Report) => {
      if ('begins' in report) this.#guard(limit(report.begins))
      else this.#settle(report)
    })
    this.#child.on('exit', () => this.#settle('ended'))
  }

  readonly errors: string[] = []

  /** Resolves to the report, or to why there is none; then the process has ended. */
  ask(request: Request): Promise<Report | 'ended' | 'late'> {
    this.#guard(60_000)
    this.#child.send(request, () => undefined)
    return new Promise(done => void this.#pending.push(done))
  }

  end(): void {
    this.#child.kill('SIGKILL')
  }

  #guard(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#settle('late')
      this.end()
    }, ms)
  }

  #settle(report: Report | 'ended' | 'late'): void {
    clearTimeout(this.#timer)
    this.#pending.shift()?.(report)
  }
}

function matches(pattern: string, path: string): boolean {
  const rules: Readonly<Record<string, string>> = { '**': '.*', '*': '[^/]*', '{': '(', '}': ')', ',': '|', '.': '\\.' }
  return new RegExp(`^${pattern.replaceAll(/\*\*|[*{},.]/g, token => rules[token])}$`).test(path)
}

async function mutantsOf(paths: readonly string[]): Promise<{ mutants: Mutant[]; root: string }> {
  const mutants: Mutant[] = []
  const replaced = new Map<string, string>()
  for (const path of paths) {
    const file = await instrument(path, readFileSync(path, 'utf8'), mutants.length)
    mutants.push(...file.mutants)
    replaced.set(path.replace(/\.ts$/, '.js'), file.code)
  }
  return { mutants, root: createCopy('instrumented', replaced, ['src', 'sim', 'test']) }
}

/** The share of mutants of each file, at least one. */
function sampleOf(mutants: readonly Mutant[], count: number, seed: number): Mutant[] {
  const random = new Random(seed, 'mutants')
  return [...new Set(mutants.map(({ file }) => file))].flatMap(path => {
    const all = mutants.filter(({ file }) => file === path)
    const share = Math.max(1, Math.round((all.length * count) / mutants.length))
    const drawn = all.map(mutant => ({ mutant, key: random.next() })).sort((a, b) => a.key - b.key)
    return drawn.slice(0, share).map(({ mutant }) => mutant)
  })
}

async function run(): Promise<void> {
  const all = ['src', 'sim'].flatMap(folder =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(file => join(folder, file))
  )
  const paths = all.filter(path => path.endsWith('.ts') && matches(values.files, path)).sort()
  const { mutants, root } = await mutantsOf(paths)
  const chosen = values.only ? survivorsOf(values.only, mutants) : mutants
  const sample = sampleOf(chosen, Math.min(Number(values.sample), chosen.length), Number(values.seed))
  const options = { root, mutants: mutants.length, trials: Number(values.trials), seed: Number(values.seed) }

  let steps: readonly Measured[] = []
  const limitOf = (step: number) => SPARE_MS + SLOWER * (steps[step]?.ms ?? 60_000)
  const start = () => new Runner(options, limitOf)
  let runner = start()
  const measured = await runner.ask({ measure: true })
  if (typeof measured === 'string' || !('measured' in measured))
    throw new Error(runner.errors.join('') || String(measured))
  steps = measured.measured
  console.error(`${mutants.length} mutants, ${sample.length} of them drawn; ${steps.length} steps`)

  const results: Result[] = []
  const kills = steps.map(() => 0)
  for (const mutant of sample) {
    const chosenSteps = stepsFor(mutant, steps, kills)
    let report = await runner.ask({ mutant: mutant.id, steps: chosenSteps })
    if (typeof report !== 'string' && 'isUnsound' in report && report.isUnsound) {
      // What a mutant left behind made the step fail.
      runner.end()
      runner = start()
      report = await runner.ask({ mutant: mutant.id, steps: chosenSteps })
    }
    if (typeof report === 'string') runner = start()
    const result = resultOf(mutant, report, steps, chosenSteps)
    results.push(result)
    if (typeof report !== 'string' && 'failed' in report && report.failed !== undefined) kills[report.failed]++
    if (result.by === undefined) console.error(lineOf(result))
    writeFileSync(values.out, JSON.stringify(results, undefined, 1))
  }
  runner.end()
  print(results, mutants)
}

/** Steps that run a mutant's code: simulated ones first, of these short ones and ones that killed others. */
function stepsFor({ id }: Mutant, steps: readonly Measured[], kills: readonly number[]): number[] {
  const cost = (step: number) => steps[step].ms / (1 + kills[step])
  // Survivors of simulated trials are tried on all kinds of steps alike.
  const order: readonly Kind[] = values.only ? [] : ['simulator', 'property', 'unit']
  return [...steps.keys()]
    .filter(step => steps[step].reached.includes(id) && steps[step].ms <= Number(values.limit))
    .sort((a, b) => order.indexOf(steps[a].kind) - order.indexOf(steps[b].kind) || cost(a) - cost(b))
}

function resultOf(
  mutant: Mutant,
  report: Report | 'ended' | 'late',
  steps: readonly Measured[],
  chosen: readonly number[]
): Result {
  if (chosen.length === 0) return { ...mutant, verdict: 'not covered' }
  if (typeof report === 'string') return { ...mutant, verdict: 'time', by: report }
  const { failed, message } = report as { failed?: number; message?: string }
  if (failed === undefined) return { ...mutant, verdict: 'survived' }
  return { ...mutant, verdict: steps[failed].kind, by: `${steps[failed].name}: ${message}` }
}

/** The survivors of a result file. Lines may have moved. */
function survivorsOf(path: string, mutants: readonly Mutant[]): Mutant[] {
  const changeOf = ({ file, from, to }: Mutant) => `${file}: ${from} → ${to}`
  const results = JSON.parse(readFileSync(path, 'utf8')) as Result[]
  const survivors = new Set(results.filter(({ by }) => by === undefined).map(changeOf))
  return mutants.filter(mutant => survivors.has(changeOf(mutant)))
}

function lineOf(result: Result): string {
  const { verdict, file, line, from, to } = result
  return `${verdict}: ${file}:${line}: ${from} → ${to}`
}

/** A table in Markdown: mutants of each file and what killed those drawn; the score with its 95 % interval (Wilson). */
function print(results: readonly Result[], mutants: readonly Mutant[]): void {
  const verdicts: readonly Verdict[] = ['simulator', 'property', 'unit', 'time', 'survived', 'not covered']
  console.log(`| file | mutants | drawn | ${verdicts.join(' | ')} | score |\n|${' --- |'.repeat(verdicts.length + 4)}`)
  const row = (name: string, among: readonly Result[], total: number) => {
    const counts = verdicts.map(verdict => among.filter(result => result.verdict === verdict).length)
    const score = among.filter(({ by }) => by !== undefined).length / among.length
    console.log(`| ${[name, total, among.length, ...counts, `${(100 * score).toFixed(1)} %`].join(' | ')} |`)
  }
  for (const file of new Set(results.map(result => result.file))) {
    const isHere = (one: Mutant) => one.file === file
    row(`\`${file}\``, results.filter(isHere), mutants.filter(isHere).length)
  }
  row('all', results, mutants.length)
  const [n, z] = [results.length, 1.96]
  const p = results.filter(({ by }) => by !== undefined).length / n
  const centre = (p + (z * z) / (2 * n)) / (1 + (z * z) / n)
  const spread = (z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n))) / (1 + (z * z) / n)
  console.log(
    `\n95 % interval: ${[centre - spread, centre + spread].map(one => (100 * one).toFixed(1)).join(' to ')} %`
  )
}

try {
  await run()
} finally {
  removeMutants()
}

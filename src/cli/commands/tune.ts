/** `admb tune`: finds an update rule, an average and a batch for a linear model by successive halving. */
import { writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { Command } from 'commander'
import { stringify } from 'yaml'
import { fileProblem } from '../../base/errors.js'
import { collect } from '../../data/index.js'
import { baselineFor } from '../../learning/index.js'
import { UsageError } from '../errors.js'
import { add } from '../options/command.js'
import type { Flags } from '../options/table.js'
import { baselineLine, summary } from '../output/metric-lines.js'
import { formatNumber, ProgressLine, print, printJson, warn } from '../output/output.js'
import { TaskThreads } from '../task-threads.js'
import { openLearning } from '../training/learning.js'
import { affordable, allCandidates, type Candidate, sampled, specWord } from '../tune/candidates.js'
import { commandLine, halve, LEAST_ROWS, type Ranked, type Round, roundsFor, sharedRows } from '../tune/halving.js'
import type { TuneResult, TuneTask, TuneWorkerData } from '../tune/worker.js'

const BUDGET = 5_000_000

export function tuneCommand(program: Command): Command {
  return add(
    program,
    'tune',
    {
      help: `Tries update rules, averages and batches on prefixes of the stream, each input
scored before it is learned, and keeps the best third for a longer prefix.
Options that are given are not tuned: --rule NAME tunes the options of that
rule, and --batch 128 what suits a peer.

Examples:
  admb tune --data ads.csv --label sold
  admb tune --data rides.csv --label count --rule adagrad --out best.yaml
  admb train --data rides.csv --label count --config best.yaml`
    },
    tune
  )
}

async function tune(flags: Flags<'tune'>): Promise<void> {
  const { data = '', passes = 1, budget = BUDGET, seed = 0, limit = Number.POSITIVE_INFINITY } = flags
  if (passes > 1) throw new UsageError('only the first pass is progressive: remove --passes')
  if (flags.rule && 'geometry' in flags.rule && flags.rule.geometry === 'entropic') {
    throw new UsageError('the entropic geometry depends on features that do not occur: give another rule')
  }
  const progress = new ProgressLine()
  const { stream, options, skipped } = await openLearning(flags, 'options are tuned only')
  const { model, batch: _batch, rule: _rule, averaging: _averaging, ...fixed } = options
  const all = allCandidates(model, {
    rule: flags.rule,
    averaging: flags.average,
    batch: flags.batch && Number(flags.batch)
  })
  const most = Math.min(flags.candidates ?? all.length, all.length)
  const longest = roundsFor(most, limit, budget).at(-1)?.rows ?? 0
  const rows = sharedRows(await collect(stream, Math.max(LEAST_ROWS, longest)))
  skipped.requireInputs(data, rows.size)
  const labels = baselineFor({ model }, model !== 'linear')
  labels?.add(rows)
  const baseline = labels?.figures
  const fast = affordable(all, rows.dimension * (options.classes ?? 1))
  const candidates = sampled(fast, flags.candidates ?? fast.length, seed)
  const rounds = roundsFor(candidates.length, rows.size, budget)
  checkBudget(rounds, rows.size, budget)
  const count = Math.min(flags.threads ?? availableParallelism(), candidates.length)
  const workerData: TuneWorkerData = { rows, options: { ...fixed, model } }
  const start = () => new Worker(new URL('../tune/worker.js', import.meta.url), { workerData })
  const threads = new TaskThreads<TuneTask, TuneResult>(count, start)
  let learned = 0
  try {
    const { ranked, first } = await halve<TuneResult>({
      rounds,
      async evaluate(chosen, rows) {
        learned += chosen.length * rows
        const tasks = chosen.map((candidate, index) => ({ candidate: candidates[candidate], index, rows }))
        const results: TuneResult[] = []
        let done = 0
        const of = `of ${formatNumber(chosen.length)} candidates, ${formatNumber(rows)} inputs each`
        await threads.run(tasks, (result, { index }) => {
          results[index] = result
          done++
          progress.show(() => `${formatNumber(done)} ${of}`)
        })
        return results
      }
    })
    progress.clear()
    const [{ result, candidate }] = ranked
    if (result.failure !== undefined) throw new UsageError(`all candidates diverge: ${result.failure}`)
    const best = candidates[candidate]
    if (flags.out !== undefined) await writeConfig(flags.out, model, best, flags.l2)
    const line = commandLine(process.argv.slice(2), wordsOf(best))
    const top = ranked.slice(0, flags.top ?? 10)
    const searched = { data: stream.summary, inputs: rows.size, learned, rounds }
    if (flags.json) {
      const shown = (one: Ranked<TuneResult>) => entryOf(one, candidates)
      printJson({ command: 'tune', model, ...searched, best: top.map(shown), defaults: shown(first), baseline, line })
    } else {
      if (stream.summary) print(`data        ${stream.summary}`)
      print(
        `candidates  ${formatNumber(candidates.length)} in ${rounds.length} rounds, ${formatNumber(learned)} inputs learned\n`
      )
      showTable(top, first, candidates)
      if (baseline !== undefined) print(`\n${baselineLine(baseline, 12)}`)
      print(`\nuse         ${line}`)
      if (flags.out !== undefined) print(`stored in   ${flags.out}   (for --config)`)
    }
  } finally {
    await threads.close()
  }
  skipped.checkLimit(data, rows.size, 0, flags.skipLimit)
}

/** @throws UsageError if the prefixes are too short to compare candidates */
function checkBudget(rounds: readonly Round[], rows: number, budget: number): void {
  const [{ candidates, rows: shortest }] = rounds
  const least = Math.min(LEAST_ROWS, rows)
  if (shortest >= least) return
  const needed = 1000 * Math.ceil((least * rounds.reduce((sum, round) => sum + round.candidates + 1, 0)) / 1000)
  throw new UsageError(
    `a budget of ${budget} inputs is too small for ${candidates} candidates: give --budget ${needed}, or fewer candidates, such as --candidates ${Math.max(1, Math.floor((candidates * budget) / needed / 2))}`
  )
}

/** The options of a candidate, by long name. */
function optionsOf({ rule, averaging, batch }: Candidate) {
  return { rule: specWord(rule), average: specWord(averaging), batch }
}

function wordsOf(candidate: Candidate): string[] {
  return Object.entries(optionsOf(candidate)).flatMap(([name, value]) => [`--${name}`, String(value)])
}

function entryOf({ candidate, rows, result }: Ranked<TuneResult>, candidates: readonly Candidate[]) {
  const { loss, failure, figures } = result
  return { ...optionsOf(candidates[candidate]), inputs: rows, loss: failure ? null : loss, failure, metrics: figures }
}

function showTable(
  top: readonly Ranked<TuneResult>[],
  first: Ranked<TuneResult>,
  candidates: readonly Candidate[]
): void {
  const row = (name: string, { candidate, rows, result: { figures } }: Ranked<TuneResult>) => {
    const found = figures === undefined ? 'diverged' : summary(figures)
    print(
      `${name.padEnd(9)}${formatNumber(rows).padStart(10)}  ${found.padEnd(36)}${wordsOf(candidates[candidate]).join(' ')}`
    )
  }
  print(`${'rank'.padEnd(9)}${'inputs'.padStart(10)}  ${'progressive'.padEnd(36)}options`)
  for (const [index, one] of top.entries()) row(String(index + 1), one)
  row('defaults', first)
}

async function writeConfig(file: string, model: string, best: Candidate, l2: number | undefined): Promise<void> {
  const text = `# Found by admb tune, for --config.\n${stringify({ model, ...optionsOf(best), ...(l2 && { l2 }) })}`
  try {
    await writeFile(file, text)
  } catch (error) {
    warn(`${file} cannot be written (${fileProblem(error)}): give another path with --out`)
    process.exitCode = 1
  }
}

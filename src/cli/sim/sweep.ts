/** `admb sim sweep`: runs every combination of values in threads, and saves each finished run. */
import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { basename } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { RunResult } from '../../../sim/index.js'
import { groupRuns, type ReportedRun } from '../../../sim/report/index.js'
import { CodedError } from '../../base/errors.js'
import { UsageError } from '../errors.js'
import { print, printJson } from '../output/output.js'
import { TaskThreads } from '../task-threads.js'
import type { SimFlags } from './options.js'
import { withoutCurve } from './run.js'
import { groupColumns, headOf, InputProgress, openReport, type RunCase, rowOf } from './run-cases.js'
import { aboutOf, checkAlgorithms } from './scenarios.js'
import { expandGrid, SweepFile } from './sweep-file.js'
import type { SweepTask } from './sweep-worker.js'

/** The sweep was interrupted. */
class StoppedError extends CodedError {
  static override readonly code = 'ERR_STOPPED'
}

export async function sweep(name: string | undefined, flags: SimFlags<'sim sweep'>): Promise<void> {
  checkAlgorithms(flags.algorithms)
  const { over = [], algorithms } = flags
  const axes = algorithms === undefined ? over : [`algorithm=${algorithms.join(',')}`, ...over]
  if (axes.length === 0) throw new UsageError('nothing to sweep over; add --over key=value,value,…')
  const cases = expandGrid(name, flags, axes)
  const report = openReport(flags.report)
  const path = flags.out ?? defaultFile(name, cases)
  const results = await finish(cases, path, flags)
  const runs: ReportedRun[] = cases.map((one, index) => ({ ...one, result: results[index] }))
  if (flags.json) {
    printJson({
      command: 'sim sweep',
      file: path,
      runs: runs.map(({ varied, result }) => ({ command: 'sim run', varied, ...withoutCurve(result) }))
    })
  } else {
    const groups = groupRuns(runs)
    const columns = groupColumns(groups)
    print(headOf(columns))
    for (const group of groups) print(rowOf(columns, group))
    print(`\n${runs.length} runs, saved in ${path}`)
  }
  const title = `Sweep of ${name ?? 'a scenario'} over ${Object.keys(cases[0].varied).join(', ')}`
  await report?.write({ title, about: aboutOf(name, flags), runs }, flags)
  if (runs.some(({ result }) => result.violations.length > 0)) process.exitCode = 1
}

/** Runs the cases that the file does not have yet. @throws StoppedError on Ctrl-C */
async function finish(cases: readonly RunCase[], path: string, flags: SimFlags<'sim sweep'>): Promise<RunResult[]> {
  const finished = new SweepFile(path, flags.resume === true)
  const results = cases.map(({ scenario }) => finished.resultOf(scenario))
  const remaining = cases.flatMap(({ scenario }, index) => (results[index] === undefined ? [{ scenario, index }] : []))
  const progress = new InputProgress(remaining.reduce((sum, { scenario }) => sum + scenario.inputs, 0))
  const stop = new AbortController()
  const onSignal = () => stop.abort()
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  let done = cases.length - remaining.length
  const served = cases.map(() => 0)
  const pool = new TaskThreads<SweepTask, RunResult, number>(
    Math.min(flags.threads ?? availableParallelism(), remaining.length),
    () => new Worker(new URL('sweep-worker.js', import.meta.url))
  )
  const onProgress = (inputs: number, { index }: SweepTask) => {
    served[index] = inputs
    const sum = served.reduce((total, each) => total + each, 0)
    progress.show(sum, `${done} of ${cases.length} runs`)
  }
  const onResult = (result: RunResult, task: SweepTask) => {
    onProgress(task.scenario.inputs, task)
    finished.add(task.scenario, result)
    results[task.index] = result
    done++
  }
  try {
    await pool.run(remaining, onResult, { onProgress, signal: stop.signal })
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
    await pool.close()
    progress.clear()
    finished.close()
  }
  if (done < cases.length) {
    throw new StoppedError(
      `stopped: ${done} of ${cases.length} runs are saved in ${path}; continue with the same command and --resume`
    )
  }
  return results as RunResult[]
}

/** Depends only on the sweep, so that --resume finds the file. */
function defaultFile(name: string | undefined, cases: readonly RunCase[]): string {
  const hash = createHash('sha256').update(JSON.stringify(cases.map(({ scenario }) => scenario)))
  return `sweep-${basename(name ?? 'scenario', '.yaml')}-${hash.digest('hex').slice(0, 8)}.jsonl`
}

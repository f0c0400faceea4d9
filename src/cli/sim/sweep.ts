/** `admb sim sweep`: runs every combination of values in threads, and saves each finished run. */
import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { basename } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { RunResult, Scenario } from '../../../sim/index.js'
import { groupRuns, type ReportedRun } from '../../../sim/report/index.js'
import { CodedError } from '../../base/errors.js'
import { UsageError } from '../errors.js'
import { print, printJson } from '../output/output.js'
import type { SimFlags } from './options.js'
import { withoutCurve } from './run.js'
import { groupColumns, headOf, InputProgress, openReport, type RunCase, rowOf } from './run-cases.js'
import { aboutOf, checkAlgorithms } from './scenarios.js'
import { expandGrid, SweepFile } from './sweep-file.js'
import type { SweepWorkerMessage } from './sweep-worker.js'

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
  try {
    await runInThreads(
      remaining.map(({ scenario }) => scenario),
      {
        threads: flags.threads ?? availableParallelism(),
        signal: stop.signal,
        onProgress: inputs => progress.show(inputs, `${done} of ${cases.length} runs`),
        onResult(position, result) {
          const { scenario, index } = remaining[position]
          finished.add(scenario, result)
          results[index] = result
          done++
        }
      }
    )
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
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

export interface PoolOptions {
  readonly threads: number
  /** Called when a run has finished. @param index index of its scenario */
  onResult(index: number, result: RunResult): void
  /** @param inputs number of inputs served so far by all runs */
  onProgress(inputs: number): void
  /** Stops all threads when aborted; unfinished runs are lost. */
  readonly signal: AbortSignal
}

/**
 * Resolves when all runs have finished, or as soon as the signal is aborted.
 * @throws the error of a run or of a thread
 */
export async function runInThreads(
  scenarios: readonly Scenario[],
  { threads, onResult, onProgress, signal }: PoolOptions
): Promise<void> {
  const served = scenarios.map(() => 0)
  let next = 0
  const workers: Worker[] = []
  const manage = (worker: Worker) =>
    new Promise<void>((resolve, reject) => {
      let current = -1
      const assignNext = () => {
        if (next === scenarios.length || signal.aborted) {
          resolve()
          return
        }
        current = next++
        worker.postMessage(scenarios[current])
      }
      const progress = (inputs: number) => {
        served[current] = inputs
        onProgress(served.reduce((sum, each) => sum + each, 0))
      }
      worker.on('message', (message: SweepWorkerMessage) => {
        if (signal.aborted) return
        if (message.kind === 'served') {
          progress(message.inputs)
          return
        }
        progress(scenarios[current].inputs)
        onResult(current, message.result)
        assignNext()
      })
      worker.once('error', reject)
      signal.addEventListener('abort', () => resolve(), { once: true })
      assignNext()
    })
  try {
    await Promise.all(
      Array.from({ length: Math.min(threads, scenarios.length) }, () => {
        const worker = new Worker(new URL('sweep-worker.js', import.meta.url))
        workers.push(worker)
        return manage(worker)
      })
    )
  } finally {
    await Promise.all(workers.map(worker => worker.terminate()))
  }
}

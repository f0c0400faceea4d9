/** `admb sim fuzz`: runs random scenarios with faults until one violates a property, and writes the shrunk scenario to a file. */
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { type FuzzReport, type FuzzViolation, RUNS_PER_PORTION } from '../../../sim/index.js'
import { formatDuration, formatNumber, ProgressLine, print, printJson } from '../output/output.js'
import { TaskThreads } from '../task-threads.js'
import type { FuzzProgress, FuzzTask } from './fuzz-worker.js'
import type { SimFlags } from './options.js'

export async function runFuzz({
  runs,
  seed,
  threads = availableParallelism(),
  out,
  json
}: SimFlags<'sim fuzz'>): Promise<void> {
  const start = performance.now()
  const progress = new ProgressLine()
  const onProgress = (done: number, isShrinking: boolean) =>
    progress.show(() => {
      if (isShrinking) return `violation found within ${formatNumber(done)} runs; shrinking the schedule`
      const left = ((performance.now() - start) / done) * (runs - done)
      return `${formatNumber(done)} of ${formatNumber(runs)} runs, ${formatDuration(left / 1000)} left`
    })
  const report = await fuzzInThreads(runs, seed, threads, onProgress)
  progress.clear()
  const seconds = (performance.now() - start) / 1000
  const [found] = report.violations
  const file = out ?? `fuzz-${seed}.json`
  if (found) {
    writeFileSync(file, `${JSON.stringify(found, undefined, 2)}\n`)
    process.exitCode = 1
  }
  if (json) printJson({ command: 'sim fuzz', ...report, seconds, file: found && file })
  else if (found) describe(found, report.runs, file)
  else print(`${formatNumber(report.runs)} runs, no violation, ${seconds.toFixed(1)} s`)
}

function describe({ seed, property, schedule }: FuzzViolation, runs: number, file: string): void {
  const { scenario, faults } = schedule
  const { topology, nodes, inputs, batch } = scenario
  print(`violation in run ${formatNumber(runs)} of seed ${seed}: ${property}`)
  print(`shortest schedule: ${topology} of ${nodes} nodes, ${inputs} inputs, b = ${batch}`)
  for (const { time, ...fault } of faults) print(`${time.toFixed(2).padStart(10)} ms  ${JSON.stringify(fault)}`)
  print(`replay it with: admb sim replay ${file}`)
}

/**
 * @param onProgress called with the number of runs so far, and whether a violation is being shrunk
 * @returns the violation of the first portion that has one, or the number of runs
 */
async function fuzzInThreads(
  runs: number,
  seed: number,
  threads: number,
  onProgress: (runs: number, isShrinking: boolean) => void
): Promise<FuzzReport> {
  const portions = Math.ceil(runs / RUNS_PER_PORTION)
  let done = 0
  let isShrinking = false
  /** The first portion with a violation; later portions are skipped. */
  let end = portions
  let first: FuzzReport | undefined
  function* tasks(): Generator<FuzzTask> {
    for (let portion = 0; portion < end; portion++)
      yield { portion, runs: Math.min(RUNS_PER_PORTION, runs - portion * RUNS_PER_PORTION), seed }
  }
  const pool = new TaskThreads<FuzzTask, FuzzReport, FuzzProgress>(
    Math.min(threads, portions),
    () => new Worker(new URL('fuzz-worker.js', import.meta.url))
  )
  const onResult = (report: FuzzReport, { portion }: FuzzTask) => {
    if (report.violations.length === 0 || portion >= end) return
    end = portion
    first = { ...report, runs: portion * RUNS_PER_PORTION + report.runs }
  }
  try {
    await pool.run(tasks(), onResult, {
      onProgress: progress => {
        done += progress.runs
        isShrinking ||= progress.isShrinking
        onProgress(done, isShrinking)
      }
    })
  } finally {
    await pool.close()
  }
  return first ?? { runs, violations: [] }
}

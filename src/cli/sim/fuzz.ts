/** `admb sim fuzz`: runs random scenarios with faults until one violates a property, and writes the shrunk scenario to a file. */
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { FuzzViolation } from '../../../sim/index.js'
import { formatDuration, formatNumber, ProgressLine, print, printJson } from '../output/output.js'
import { fuzzInThreads } from './fuzz-threads.js'
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
  if (json) printJson({ command: 'sim fuzz', ...report, seconds, ...(found && { file }) })
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

/** `admb sim fuzz`: random scenarios until one violates a property. */
import { fuzz } from '../../../sim/index.js'
import { formatNumber, ProgressLine, print, printJson } from '../output.js'

export function runFuzz({ runs, seed, json }: { runs: number; seed: number; json?: boolean }): void {
  const start = performance.now()
  const progress = new ProgressLine()
  let done = 0
  const report = fuzz(runs, seed, {
    onRun: () => {
      done++
      const left = ((performance.now() - start) / done) * (runs - done)
      progress.show(() => `${formatNumber(done)} of ${formatNumber(runs)} runs, ${Math.ceil(left / 1000)} s left`)
    }
  })
  progress.clear()
  const seconds = (performance.now() - start) / 1000
  if (json) printJson({ command: 'sim fuzz', ...report, seconds })
  else if (report.violations.length === 0)
    print(`${formatNumber(report.runs)} runs, no violation, ${seconds.toFixed(1)} s`)
  else {
    for (const { property, schedule } of report.violations)
      print(`violation after ${report.runs} runs: ${property}\n${JSON.stringify(schedule)}`)
  }
  if (report.violations.length > 0) process.exitCode = 1
}

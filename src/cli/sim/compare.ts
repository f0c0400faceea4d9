/** `admb sim compare`: several algorithms on the same inputs and faults. */
import { algorithmNames } from '../../../sim/index.js'
import type { ReportedRun } from '../../../sim/report/index.js'
import { print, printJson } from '../output/output.js'
import type { SimFlags } from './options.js'
import { openReport } from './report.js'
import { withoutCurve } from './run.js'
import { runCases } from './run-cases.js'
import { aboutOf, checkAlgorithms, scenarioOf } from './scenarios.js'
import { type Column, headOf, RESULT_COLUMNS, rowOf } from './table.js'

export async function compare(name: string | undefined, flags: SimFlags<'sim compare'>): Promise<void> {
  checkAlgorithms(flags.algorithms)
  const cases = (flags.algorithms ?? algorithmNames).map(algorithm => ({
    label: algorithm,
    varied: { algorithm },
    scenario: scenarioOf(name, flags, algorithm)
  }))
  const report = openReport(flags.report)
  const columns: Column<ReportedRun>[] = [
    { head: 'algorithm', width: -15, cell: ({ label }) => label },
    ...RESULT_COLUMNS.map(column => ({ ...column, cell: ({ result }: ReportedRun) => column.cell(result) }))
  ]
  if (!flags.json) print(headOf(columns))
  const onRun = (run: ReportedRun) => {
    if (!flags.json) print(rowOf(columns, run))
  }
  const runs = await runCases(cases, { recordTimelines: report !== undefined, onRun })
  if (flags.json) {
    printJson({
      command: 'sim compare',
      runs: runs.map(({ varied, result }) => ({ command: 'sim run', varied, ...withoutCurve(result) }))
    })
  }
  await report?.write(
    { title: `${runs.length} algorithms on ${name ?? 'a scenario'}`, about: aboutOf(name, flags), runs },
    flags
  )
  if (runs.some(({ result }) => result.violations.length > 0)) process.exitCode = 1
}

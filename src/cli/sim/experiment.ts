/** `admb sim experiment`: the experiments of the papers. */
import { experimentNamed } from '../../../sim/index.js'
import type { ReportedRun } from '../../../sim/report/index.js'
import { print, printJson } from '../output/output.js'
import type { SimFlags } from './options.js'
import { openReport } from './report.js'
import { runCases } from './run-cases.js'
import { type Column, headOf, RESULT_COLUMNS, rowOf } from './table.js'

export async function runExperiment(name: string, flags: SimFlags<'sim experiment'>): Promise<void> {
  const { inputs, quick, json } = flags
  const { about, cases: casesFor } = experimentNamed(name)
  const cases = casesFor(quick ? Math.round(inputs / 10) : inputs)
  const report = openReport(flags.report)
  const columns: Column<ReportedRun>[] = [
    { head: '', width: -Math.max(...cases.map(({ label }) => label.length)), cell: ({ label }) => label },
    ...RESULT_COLUMNS.map(column => ({ ...column, cell: ({ result }: ReportedRun) => column.cell(result) }))
  ]
  if (!json) print(`${about}\n\n${headOf(columns)}`)
  const onRun = (run: ReportedRun) => {
    if (!json) print(rowOf(columns, run))
  }
  const runs = await runCases(cases, { recordTimelines: report !== undefined, onRun })
  if (json) {
    printJson({
      command: 'sim experiment',
      experiment: name,
      runs: runs.map(({ varied, result }) => ({ command: 'sim run', varied, ...result }))
    })
  }
  await report?.write({ title: `Experiment ${name}`, about, runs }, flags)
}

/** `admb sim run`: one algorithm on one scenario. */
import type { RunResult } from '../../../sim/index.js'
import { formatNumber, print, printJson } from '../output/output.js'
import { accountLines } from './accounts.js'
import { measure } from './measure.js'
import { openReport } from './report.js'
import { aboutOf, type ScenarioFlags, scenarioOf } from './scenarios.js'
import { type Column, headOf, RESULT_COLUMNS, rowOf } from './table.js'

const COLUMNS: readonly Column<RunResult>[] = [
  { head: 'algorithm', width: -15, cell: ({ algorithm }) => algorithm },
  ...RESULT_COLUMNS
]

export async function run(name: string | undefined, flags: ScenarioFlags): Promise<void> {
  const scenario = scenarioOf(name, flags)
  const report = openReport(flags.report)
  const cases = [{ label: scenario.algorithm, varied: {}, scenario }]
  const runs = await measure(cases, { watch: report !== undefined, onRun: () => undefined })
  const [{ result }] = runs
  if (flags.json) printJson({ command: 'sim run', ...withoutCurve(result) })
  else {
    print('inputs      regret   average loss')
    for (const { inputs, regret, averageLoss } of result.curve) {
      print(`${formatNumber(inputs).padStart(10)} ${formatNumber(regret).padStart(9)}   ${averageLoss.toFixed(5)}`)
    }
    print(`\n${headOf(COLUMNS)}\n${rowOf(COLUMNS, result)}\n`)
    for (const line of accountLines(result)) print(line)
    for (const violation of result.violations) print(`violation: ${violation}`)
  }
  await report?.write({ title: `${scenario.algorithm} on ${name ?? 'a scenario'}`, about: aboutOf(name), runs }, flags)
  if (result.violations.length > 0) process.exitCode = 1
}

/** A result as `--json` prints it; reports have the curve. */
export function withoutCurve({ curve: _curve, ...result }: RunResult): Omit<RunResult, 'curve'> {
  return result
}

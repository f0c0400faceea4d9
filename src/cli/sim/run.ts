/** `admb sim run`, `compare` and `experiment`. */
import {
  type AlgorithmName,
  algorithms,
  describeTerms,
  experimentNamed,
  paperAlgorithms,
  type RunResult
} from '../../../sim/index.js'
import type { ReportedRun } from '../../../sim/report/index.js'
import { formatNumber, print, printJson } from '../output/output.js'
import type { SimFlags } from './options.js'
import { type Column, headOf, openReport, RESULT_COLUMNS, rowOf, runCases } from './run-cases.js'
import { aboutOf, checkAlgorithms, scenarioOf } from './scenarios.js'

const COLUMNS: readonly Column<RunResult>[] = [
  { head: 'algorithm', width: -15, cell: ({ algorithm }) => algorithm },
  ...RESULT_COLUMNS
]

export async function run(name: string | undefined, flags: SimFlags<'sim run'>): Promise<void> {
  const scenario = scenarioOf(name, flags)
  const report = openReport(flags.report)
  const cases = [{ label: scenario.algorithm, varied: {}, scenario }]
  const runs = await runCases(cases, { recordTimelines: report !== undefined, onRun: () => undefined })
  const [{ result }] = runs
  if (flags.json) printJson({ command: 'sim run', ...withoutCurve(result) })
  else {
    print('inputs      regret   average loss   virtual ms')
    for (const { inputs, regret, averageLoss, virtualMs } of result.curve) {
      const [count, sum, time] = [inputs, regret, virtualMs].map(formatNumber)
      print(`${count.padStart(10)} ${sum.padStart(9)}   ${averageLoss.toFixed(5)} ${time.padStart(17)}`)
    }
    print(`\n${headOf(COLUMNS)}\n${rowOf(COLUMNS, result)}\n`)
    for (const line of accountLines(result)) print(line)
    for (const violation of result.violations) print(`violation: ${violation}`)
  }
  await report?.write(
    { title: `${scenario.algorithm} on ${name ?? 'a scenario'}`, about: aboutOf(name, flags), runs },
    flags
  )
  if (result.violations.length > 0) process.exitCode = 1
}

/** A result as `--json` prints it. Reports have the curve. */
export function withoutCurve({ curve: _curve, ...result }: RunResult): Omit<RunResult, 'curve'> {
  return result
}

/** Details of the regret: comparator, distribution over nodes, good periods and bound. */
function accountLines(result: RunResult): string[] {
  const { inputs, goodInputs, goodRegret, regretByNode } = result
  const { min, median, max } = regretByNode
  return [
    `comparator   ${comparatorOf(result)}, average loss ${result.comparatorLoss.toFixed(5)}`,
    `by node      regret from ${formatNumber(min)} to ${formatNumber(max)}, median ${formatNumber(median)}`,
    `good periods ${formatNumber(goodInputs)} of ${formatNumber(inputs)} inputs, regret ${formatNumber(goodRegret)}`,
    `bound        ${boundOf(result)}`,
    ...(result.boundTerms ? [`its terms    ${describeTerms(result.boundTerms)}`] : [])
  ]
}

function comparatorOf({ comparator, gradientNorm }: RunResult): string {
  if (comparator === 'known') return 'the best predictor of the stream'
  return `the best predictor in hindsight (gradient ${gradientNorm?.toExponential(1)})`
}

function boundOf({ algorithm, bound, boundTerms, boundHolds, boundIsVacuous }: RunResult): string {
  if (bound === undefined || boundTerms === undefined) return 'none: no theorem covers this run'
  const goodPeriodsOnly = algorithms[algorithm as AlgorithmName].bound?.scope === 'good-periods'
  const bounded = goodPeriodsOnly ? 'the expected regret in good periods' : 'the expected regret'
  const verdict = boundIsVacuous
    ? 'vacuous, because it is at least log 2 per input, the loss of a predictor that never learns'
    : boundHolds
      ? 'holds'
      : 'does not hold in this run'
  return `${formatNumber(bound)} on ${bounded} (Theorem ${boundTerms.theorem}): ${verdict}`
}

export async function compare(name: string | undefined, flags: SimFlags<'sim compare'>): Promise<void> {
  checkAlgorithms(flags.algorithms)
  const cases = (flags.algorithms ?? paperAlgorithms).map(algorithm => ({
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

export async function runExperiment(name: string, flags: SimFlags<'sim experiment'>): Promise<void> {
  const { inputs, quick, json } = flags
  const { about, cases: casesFor, measures = {} } = experimentNamed(name)
  const cases = casesFor(quick ? Math.round(inputs / 10) : inputs)
  const report = openReport(flags.report)
  const columns: Column<ReportedRun>[] = [
    { head: '', width: -Math.max(...cases.map(({ label }) => label.length)), cell: ({ label }) => label },
    ...Object.entries(measures).map(([head, measure]) => ({
      head,
      width: Math.max(10, head.length + 2),
      cell: (run: ReportedRun) => formatMeasure(measure(run, before))
    })),
    ...RESULT_COLUMNS.map(column => ({ ...column, cell: ({ result }: ReportedRun) => column.cell(result) }))
  ]
  if (!json) print(`${about}\n\n${headOf(columns)}`)
  const before: ReportedRun[] = []
  const figures: Record<string, number | undefined>[] = []
  const onRun = (run: ReportedRun) => {
    if (!json) print(rowOf(columns, run))
    figures.push(Object.fromEntries(Object.entries(measures).map(([key, measure]) => [key, measure(run, before)])))
    before.push(run)
  }
  const runs = await runCases(cases, { recordTimelines: report !== undefined, onRun })
  if (json) {
    printJson({
      command: 'sim experiment',
      experiment: name,
      runs: runs.map(({ varied, result }, i) => ({ command: 'sim run', varied, ...result, measures: figures[i] }))
    })
  }
  await report?.write({ title: `Experiment ${name}`, about, runs }, flags)
}

/** Five digits, or a dash. */
function formatMeasure(value: number | undefined): string {
  return value === undefined ? '-' : value.toLocaleString('en-US', { maximumSignificantDigits: 4 })
}

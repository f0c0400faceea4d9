/** Runs cases one after another in this thread, with progress on a terminal, and prints and reports their results. */

import { join } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import { algorithms, type RunObserver, type RunResult, type Scenario, simulate } from '../../../sim/index.js'
import {
  type Group,
  loadWriter,
  type Report,
  type ReportedRun,
  type Spread,
  spreadOf,
  TimelineRecorder
} from '../../../sim/report/index.js'
import { fileProblem, formatBytes } from '../../base/errors.js'
import { makeFolder } from '../../base/files.js'
import { UsageError } from '../errors.js'
import { formatDuration, formatNumber, ProgressLine, print } from '../output/output.js'
import { readData } from './scenarios.js'

export interface RunCase {
  readonly label: string
  /** The varied keys of the scenario. */
  readonly varied: ReportedRun['varied']
  readonly scenario: Scenario
}

/** Inputs between two updates of the progress line. */
const STRIDE = 1024

/**
 * @param recordTimelines whether to record the timeline of each run, for a report
 * @param onRun called after each run
 */
export async function runCases(
  cases: readonly RunCase[],
  { recordTimelines, onRun }: { readonly recordTimelines: boolean; readonly onRun: (run: ReportedRun) => void }
): Promise<ReportedRun[]> {
  for (const { scenario } of cases) checkMemory(scenario)
  const progress = new InputProgress(cases.reduce((sum, { scenario }) => sum + scenario.inputs, 0))
  let before = 0
  const runs: ReportedRun[] = []
  for (const [index, runCase] of cases.entries()) {
    const recorder = recordTimelines ? new TimelineRecorder(runCase.scenario) : undefined
    const what = cases.length > 1 ? `${runCase.label} (${index + 1} of ${cases.length})` : runCase.label
    const observer: RunObserver = {
      ...recorder?.observer,
      onInput(inputs) {
        if (inputs % STRIDE === 0) progress.show(before + inputs, what)
      }
    }
    const data = await readData(runCase.scenario)
    const result = simulate(runCase.scenario, { observer, data })
    before += runCase.scenario.inputs
    progress.clear()
    const run = { ...runCase, result, timeline: recorder?.finish(result.virtualMs) }
    onRun(run)
    runs.push(run)
  }
  return runs
}

/** @throws UsageError if the run cannot fit into the memory of this process */
function checkMemory(scenario: Scenario): void {
  const { heap_size_limit: limit } = getHeapStatistics()
  const { memory } = algorithms[scenario.algorithm]
  const needed = memory?.(scenario) ?? 0
  if (memory === undefined || needed <= limit) return
  const hint = memory({ ...scenario, checks: false }) <= limit ? 'checks=false, ' : ''
  throw new UsageError(
    `${formatNumber(scenario.nodes)} nodes need at least ${formatBytes(needed)}, and this process may use ${formatBytes(limit)}: use ${hint}fewer nodes or NODE_OPTIONS=--max-old-space-size=${Math.ceil((1.5 * needed) / 2 ** 20)}`
  )
}

const BAR_WIDTH = 24

/** A progress line on a terminal: share of the inputs, and the remaining time. Prints nothing elsewhere. */
export class InputProgress {
  readonly #line = new ProgressLine()
  readonly #start = performance.now()
  readonly #total: number

  /** @param total inputs of all runs */
  constructor(total: number) {
    this.#total = total
  }

  /** @param done inputs served so far by all runs @param what the current runs */
  show(done: number, what: string): void {
    this.#line.show(() => {
      const share = Math.min(1, done / this.#total)
      const seconds = (performance.now() - this.#start) / 1000
      const left = share > 0 ? `, ${formatDuration((seconds / share) * (1 - share))} left` : ''
      const full = Math.floor(share * BAR_WIDTH)
      return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)} ${Math.floor(100 * share)} %, ${what}${left}`
    })
  }

  clear(): void {
    this.#line.clear()
  }
}

export interface OpenReport {
  write(report: Omit<Report, 'command'>, flags: { readonly json?: boolean }): Promise<void>
}

/**
 * Creates the directory before the runs, so that a failure does not waste them.
 * @returns undefined without a directory
 * @throws UsageError if it cannot be created
 */
export function openReport(folder: string | undefined): OpenReport | undefined {
  if (folder === undefined) return undefined
  try {
    makeFolder(join(folder, 'figures'))
  } catch (error) {
    throw new UsageError(`--report: cannot create ${folder} (${fileProblem(error)})`)
  }
  return {
    async write(report, { json }) {
      const writeReport = await loadWriter()
      await writeReport(folder, { ...report, command: commandLine() })
      if (!json) print(`\nreport: ${join(folder, 'index.html')}`)
    }
  }
}

/** The command line, quoted for a shell. */
export function commandLine(words: readonly string[] = process.argv.slice(2)): string {
  return [
    'admb',
    ...words.map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
  ].join(' ')
}

export interface Column<T> {
  readonly head: string
  /** Width in characters, including two spaces; negative for a left-aligned column. */
  readonly width: number
  cell(row: T): string
}

export function headOf<T>(columns: readonly Column<T>[]): string {
  return lineOf(columns, ({ head }) => head)
}

export function rowOf<T>(columns: readonly Column<T>[], row: T): string {
  return lineOf(columns, column => column.cell(row))
}

function boundVerdict({ boundHolds, boundIsVacuous }: RunResult): string {
  if (boundHolds === undefined) return '-'
  return boundIsVacuous ? 'vacuous' : boundHolds ? 'yes' : 'no'
}

/** The columns for the result of a run. */
export const RESULT_COLUMNS: readonly Column<RunResult>[] = [
  { head: 'regret', width: 11, cell: ({ regret }) => formatNumber(regret) },
  { head: 'with w_j', width: 11, cell: ({ newestRegret }) => formatNumber(newestRegret) },
  { head: 'bound', width: 12, cell: ({ bound }) => (bound === undefined ? '-' : formatNumber(bound)) },
  { head: 'holds', width: 9, cell: boundVerdict },
  { head: 'average loss', width: 14, cell: ({ averageLoss }) => averageLoss.toFixed(5) },
  { head: 'start', width: 9, cell: ({ startInputs }) => (startInputs === undefined ? '-' : formatNumber(startInputs)) },
  { head: 'updates', width: 10, cell: ({ updates }) => formatNumber(updates) },
  { head: 'used', width: 9, cell: ({ inputs, used }) => percent(used / inputs) },
  { head: 'messages', width: 12, cell: ({ messages }) => formatNumber(messages) },
  { head: 'MB sent', width: 10, cell: ({ bytes }) => (bytes / 1e6).toFixed(1) },
  { head: 'seconds', width: 9, cell: ({ seconds }) => seconds.toFixed(1) }
]

/** The columns for runs that differ only in their seed: means and, for several runs, ± the standard deviation. */
export function groupColumns(groups: readonly Group[]): Column<Group>[] {
  const labels = Math.max(...groups.map(({ label }) => label.length))
  const statistics = ({ runs }: Group, value: (result: RunResult) => number) =>
    spreadOf(runs.map(({ result }) => value(result)))
  const pair = ({ runs }: Group, { mean, deviation }: Spread, format: (value: number) => string) =>
    runs.length > 1 ? `${format(mean)} ± ${format(deviation)}` : format(mean)
  return [
    { head: 'run', width: -labels, cell: ({ label }) => label },
    { head: 'seeds', width: 7, cell: ({ runs }) => String(runs.length) },
    {
      head: 'regret',
      width: 18,
      cell: group =>
        pair(
          group,
          statistics(group, one => one.regret),
          formatNumber
        )
    },
    {
      head: 'average loss',
      width: 21,
      cell: group =>
        pair(
          group,
          statistics(group, one => one.averageLoss),
          value => value.toFixed(5)
        )
    },
    { head: 'updates', width: 10, cell: group => formatNumber(statistics(group, one => one.updates).mean) },
    { head: 'used', width: 9, cell: group => percent(statistics(group, one => one.used / one.inputs).mean) },
    { head: 'MB sent', width: 10, cell: group => (statistics(group, one => one.bytes).mean / 1e6).toFixed(1) }
  ]
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`
}

function lineOf<T>(columns: readonly Column<T>[], text: (column: Column<T>) => string): string {
  return columns
    .map(column => (column.width < 0 ? text(column).padEnd(-column.width) : text(column).padStart(column.width)))
    .join('')
    .trimEnd()
}

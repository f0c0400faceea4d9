/** Tables of runs with columns of fixed width, so that a line can be printed as soon as its run has finished. */
import type { RunResult } from '../../../sim/index.js'
import { type Group, type Spread, spreadOf } from '../../../sim/report/index.js'
import { formatNumber } from '../output/output.js'

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

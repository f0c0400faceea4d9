/** The data behind a report, as flat rows, and as CSV (RFC 4180). */
import type { Scenario } from '../index.js'
import type { ReportedRun } from './types.js'

export type Cell = string | number | boolean | undefined
export type Row = Readonly<Record<string, Cell>>

/** One row a run: its number, what it was, what it came to. */
export function runRows(runs: readonly ReportedRun[]): Row[] {
  return runs.map(({ label, scenario, result }, index) => {
    const { curve: _curve, violations, ...values } = result
    const scalars = Object.entries(values).filter(([, value]) => typeof value !== 'object')
    return {
      run: index,
      label,
      ...flatten(scenario),
      ...(Object.fromEntries(scalars) as Row),
      violations: violations.length
    }
  })
}

/** One row a point of a curve. */
export function curveRows(runs: readonly ReportedRun[]): Row[] {
  return runs.flatMap(({ label, result }, run) =>
    result.curve.map(point => ({ run, label, seed: result.seed, ...(point as unknown as Row) }))
  )
}

/** One row a time in which a node of a close view did not change. */
export function spanRows(runs: readonly ReportedRun[]): Row[] {
  return runs.flatMap(({ label, timeline }, run) =>
    (timeline?.windows ?? []).flatMap(({ kind, spans }) =>
      spans.map(({ node, from, until, held }) => ({
        run,
        label,
        window: kind,
        node,
        from,
        until,
        away: held === undefined,
        predictor: held?.id,
        updates: held?.updates,
        maker: held?.maker
      }))
    )
  )
}

/** A scenario's values by their keys as `--set` takes them. */
export function flatten(scenario: Scenario): Record<string, Cell> {
  return Object.fromEntries(
    Object.entries(scenario).flatMap(([key, value]): [string, Cell][] =>
      typeof value === 'object' && value !== null
        ? Object.entries(value as object).map(([inner, innermost]) => [`${key}.${inner}`, innermost as Cell])
        : [[key, value as Cell]]
    )
  )
}

/** A head line with every key that any row has, then the rows; nothing for a value that is not there. */
export function toCsv(rows: readonly Row[]): string {
  const keys = [...new Set(rows.flatMap(row => Object.keys(row)))]
  const lines = [keys, ...rows.map(row => keys.map(key => row[key]))]
  return lines.map(cells => `${cells.map(csvCell).join(',')}\r\n`).join('')
}

function csvCell(value: Cell): string {
  const text = value === undefined ? '' : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

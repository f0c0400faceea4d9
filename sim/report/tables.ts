/** The data of a report as flat rows and as CSV (RFC 4180). */
import { parseScenario, type Scenario } from '../index.js'
import type { ReportedRun } from './types.js'

export type Cell = string | number | boolean | undefined
export type Row = Readonly<Record<string, Cell>>

/** A row per run: its number, scenario and result. */
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

/** A row per point of a curve. */
export function curveRows(runs: readonly ReportedRun[]): Row[] {
  return runs.flatMap(({ label, result }, run) =>
    result.curve.map(point => ({ run, label, seed: result.seed, ...(point as unknown as Row) }))
  )
}

/** The values of a scenario by key, nested keys with a dot as in `--set`. */
export function flatten(scenario: Scenario): Record<string, Cell> {
  return Object.fromEntries(
    Object.entries(scenario).flatMap(([key, value]): [string, Cell][] =>
      typeof value === 'object' && value !== null
        ? Object.entries(value as object).map(([inner, innermost]) => [`${key}.${inner}`, innermost as Cell])
        : [[key, value as Cell]]
    )
  )
}

/** A header with the keys of all rows, then the rows; missing values are empty. */
export function toCsv(rows: readonly Row[]): string {
  const keys = [...new Set(rows.flatMap(row => Object.keys(row)))]
  const lines = [keys, ...rows.map(row => keys.map(key => row[key]))]
  return lines.map(cells => `${cells.map(csvCell).join(',')}\r\n`).join('')
}

function csvCell(value: Cell): string {
  const text = value === undefined ? '' : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export interface ScenarioEntry {
  readonly key: string
  /** One value if all runs share it. */
  readonly values: readonly Cell[]
  readonly isVaried: boolean
  readonly isDefault: boolean
}

/** The keys of the runs' scenarios, with the varied ones and those that differ from the default. */
export function scenarioEntries(runs: readonly ReportedRun[]): ScenarioEntry[] {
  const defaults = flatten(parseScenario({}, 'defaults'))
  const all = runs.map(({ scenario }) => flatten(scenario))
  const keys = [...new Set(all.flatMap(scenario => Object.keys(scenario)))]
  return keys.map(key => {
    const values = [...new Set(all.map(scenario => scenario[key]))]
    return { key, values, isVaried: values.length > 1, isDefault: values.length === 1 && values[0] === defaults[key] }
  })
}

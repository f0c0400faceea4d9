/**
 * The data of a report: runs, groups of runs that differ only in their seed (plots have a line per group, tables a row), flat
 * rows and CSV (RFC 4180).
 */
import { type CurvePoint, parseScenario, type RunResult, type Scenario } from '../index.js'
import type { Timeline } from './timeline.js'

export interface ReportedRun {
  /** Name of the run in plots and tables. */
  readonly label: string
  /** The varied keys of the scenario. */
  readonly varied: Readonly<Record<string, string | number | boolean>>
  readonly scenario: Scenario
  readonly result: RunResult
  /** Timeline of the predictors, if it was recorded and the algorithm identifies predictors. */
  readonly timeline?: Timeline
}

export interface Report {
  readonly title: string
  /** A sentence on the purpose of the runs. */
  readonly about?: string
  /** The command that reproduces this report. */
  readonly command: string
  readonly runs: readonly ReportedRun[]
}

export interface Group {
  readonly label: string
  /** The varied keys of the scenario, without the seed. */
  readonly varied: ReportedRun['varied']
  readonly runs: readonly ReportedRun[]
}

export interface Spread {
  readonly mean: number
  /** Standard deviation of the sample; 0 for a single value. */
  readonly deviation: number
  readonly least: number
  readonly most: number
}

export function groupRuns(runs: readonly ReportedRun[]): Group[] {
  const groups = new Map<string, { varied: ReportedRun['varied']; label: string; runs: ReportedRun[] }>()
  for (const run of runs) {
    const { seed, ...varied } = run.varied
    const key = JSON.stringify(Object.entries(varied).sort())
    const label = seed === undefined ? run.label : labelOf(varied) || run.scenario.algorithm
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { varied, label, runs: [run] })
    else group.runs.push(run)
  }
  return [...groups.values()]
}

/** A label such as "batch 64, latency 1". */
export function labelOf(varied: ReportedRun['varied']): string {
  return Object.entries(varied)
    .map(([key, value]) => (key === 'algorithm' ? `${value}` : `${key} ${value}`))
    .join(', ')
}

export function spreadOf(values: readonly number[]): Spread {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return {
    mean,
    deviation: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0,
    least: Math.min(...values),
    most: Math.max(...values)
  }
}

/** The measures that a curve can show. */
export const MEASURES = {
  regret: (point: CurvePoint) => point.regret,
  averageLoss: (point: CurvePoint) => point.averageLoss,
  excess: (point: CurvePoint) => point.regret / point.inputs,
  updates: (point: CurvePoint) => point.updates,
  bytes: (point: CurvePoint) => point.bytes
} as const
export type Measure = keyof typeof MEASURES

/** A point of a line. */
export interface CurveRow {
  readonly run: string
  readonly x: number
  readonly value: number
  readonly least: number
  readonly most: number
}

/**
 * The curve of each group, averaged over its runs.
 * @param positive omits points that a logarithmic axis cannot show
 * @param over what the points are at
 */
export function curvesOf(
  groups: readonly Group[],
  measure: Measure,
  positive: boolean,
  over: 'inputs' | 'virtualMs' = 'inputs'
): CurveRow[] {
  return groups.flatMap(({ label, runs }) =>
    runs[0].result.curve.flatMap(({ inputs }) => {
      const points = runs.flatMap(({ result }) => result.curve.find(point => point.inputs === inputs) ?? [])
      const { mean, least, most } = spreadOf(points.map(MEASURES[measure]))
      const x = spreadOf(points.map(point => point[over])).mean
      return positive && least <= 0 ? [] : [{ run: label, x, value: mean, least, most }]
    })
  )
}

export type Cell = string | number | boolean | undefined
type Row = Readonly<Record<string, Cell>>

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

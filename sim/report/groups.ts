/** Groups of runs that differ only in their seed. Plots have a line per group, tables a row. */
import type { CurvePoint } from '../index.js'
import type { ReportedRun } from './types.js'

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

/** The curve of each group, averaged over its runs. @param positive omits points that a logarithmic axis cannot show */
export function curvesOf(groups: readonly Group[], measure: Measure, positive: boolean): CurveRow[] {
  return groups.flatMap(({ label, runs }) =>
    runs[0].result.curve.flatMap(({ inputs }) => {
      const points = runs.flatMap(({ result }) => result.curve.find(point => point.inputs === inputs) ?? [])
      const { mean, least, most } = spreadOf(points.map(MEASURES[measure]))
      return positive && least <= 0 ? [] : [{ run: label, x: inputs, value: mean, least, most }]
    })
  )
}

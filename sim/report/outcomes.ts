/** Plots of the final regret over a varied key, for example to find the best batch size in a sweep. */
import type { TopLevelSpec } from '#vega-lite'
import { type Group, labelOf, MEASURES, spreadOf } from './groups.js'
import type { Figure } from './render.js'
import { SERIES, SHAPES } from './theme.js'

/** Maximum number of such plots in a report. */
const MAX_PLOTS = 4
/** Minimum number of values of a key for a plot. */
const MIN_VALUES = 3

export interface OutcomeRow {
  readonly key: number
  readonly run: string
  readonly value: number
  readonly least: number
  readonly most: number
}

/** A plot for each key that was varied over enough numbers. */
export function outcomeFigures(groups: readonly Group[]): Figure[] {
  const keys = [...new Set(groups.flatMap(({ varied }) => Object.keys(varied)))]
  return keys
    .map(key => ({ key, rows: outcomesOf(groups, key) }))
    .filter(({ rows }) => new Set(rows.map(row => row.key)).size >= MIN_VALUES)
    .slice(0, MAX_PLOTS)
    .map(({ key, rows }) => outcomeFigure(key, rows))
}

/** Final regret per input of the runs in which a key was varied over numbers. */
export function outcomesOf(groups: readonly Group[], key: string): OutcomeRow[] {
  return groups.flatMap(({ varied, runs }) => {
    const { [key]: at, ...others } = varied
    if (typeof at !== 'number') return []
    const { mean, least, most } = spreadOf(runs.map(({ result }) => MEASURES.excess(result)))
    return [{ key: at, run: labelOf(others), value: mean, least, most }]
  })
}

function outcomeFigure(key: string, rows: readonly OutcomeRow[]): Figure {
  const names = [...new Set(rows.map(({ run }) => run))]
  const title = `Regret per input by ${key}`
  const isSpread = rows.some(({ least, most }) => most > least)
  const caption = `Average loss above the best predictor’s at the end of the runs, by ${key}.${
    isSpread ? ' Points are means over seeds; bars are from minimum to maximum.' : ''
  }`
  const values = rows.map(row => row.key)
  const isLogX = Math.min(...values) > 0 && Math.max(...values) >= 8 * Math.min(...values)
  const isLogY = rows.every(({ least }) => least > 0)
  const y = {
    type: 'quantitative',
    axis: { title: 'regret per input', format: '~g', tickCount: 6 },
    scale: isLogY ? ({ type: 'log', nice: false, padding: 12 } as const) : { zero: false }
  } as const
  const color = {
    field: 'run',
    type: 'nominal',
    scale: { domain: names, range: names.map((_, index) => SERIES[index % SERIES.length]) },
    legend:
      names.length > 1 ? { title: null, orient: 'bottom', columns: names.length > 3 ? 2 : 3, symbolOpacity: 1 } : null
  } as const
  const shape = {
    ...color,
    scale: { domain: names, range: names.map((_, index) => SHAPES[index % SHAPES.length]) }
  } as const
  const spec: TopLevelSpec = {
    title,
    description: caption,
    width: 420,
    height: 270,
    data: { name: 'outcomes', values: [...rows] },
    encoding: {
      x: {
        field: 'key',
        type: 'quantitative',
        axis: { title: key, values: [...new Set(values)], format: '~r', labelOverlap: true },
        scale: isLogX ? { type: 'log', nice: false, padding: 16 } : { zero: false, padding: 16 }
      },
      color
    },
    layer: [
      { mark: { type: 'line', strokeWidth: 1.6 }, encoding: { y: { ...y, field: 'value' } } },
      {
        mark: { type: 'rule', opacity: 0.5 },
        encoding: { y: { ...y, field: 'least' }, y2: { field: 'most' } }
      },
      {
        mark: { type: 'point', filled: true, size: 58, opacity: 1 },
        encoding: {
          y: { ...y, field: 'value' },
          shape,
          tooltip: [
            { field: 'run', title: 'run' },
            { field: 'key', title: key },
            { field: 'value', title: 'regret per input', format: '.4~g' }
          ]
        }
      }
    ]
  }
  return { name: `by-${key.replaceAll('.', '-')}`, title, caption, isWide: false, spec }
}

/** The line plots of a report, all in one style: a line for each group of runs, over the inputs or over a varied number. */
import type { TopLevelSpec } from '#vega-lite'
import { algorithms } from '../index.js'
import { type CurveRow, curvesOf, type Group, labelOf, MEASURES, type Measure, spreadOf } from './groups.js'
import type { Figure } from './render.js'
import { DASHES, SERIES, SHAPES } from './theme.js'

/** Number of lines with distinct colours and dashes. */
export const MAX_LINES = SERIES.length * DASHES.length
/** Maximum number of plots over varied numbers, and minimum number of values for one. */
const MAX_KEYS = 4
const MIN_VALUES = 3

interface Plot {
  readonly name: string
  readonly title: string
  readonly caption: string
  readonly x: { readonly title: string; readonly isLog: boolean; readonly values?: readonly number[] }
  readonly y: { readonly title: string; readonly isLog: boolean; readonly format: string }
}

/** What is plotted over the number of inputs. */
const MEASURED: readonly (Omit<Plot, 'name' | 'x'> & { readonly name: Measure })[] = [
  {
    name: 'regret',
    title: 'Regret',
    caption:
      'Loss of all served predictions minus that of the best predictor. On these axes a power law is a straight line; regret proportional to the square root of the inputs has slope ½.',
    y: { title: 'regret', isLog: true, format: '~s' }
  },
  {
    name: 'averageLoss',
    title: 'Average loss',
    caption: 'Loss per input so far.',
    y: { title: 'loss per input', isLog: false, format: '.2f' }
  },
  {
    name: 'updates',
    title: 'Updates',
    caption: 'Updates of the best predictor that any node holds.',
    y: { title: 'updates', isLog: true, format: '~s' }
  },
  {
    name: 'bytes',
    title: 'Bytes sent',
    caption: 'Bytes of all messages of all nodes so far.',
    y: { title: 'bytes, all nodes', isLog: true, format: '~s' }
  }
]

/** @param groups the first ones are plotted over the inputs, as many as can be told apart */
export function figuresOf(groups: readonly Group[]): Figure[] {
  return [...byKeys(groups), ...MEASURED.flatMap(plot => overInputs(plot, groups.slice(0, MAX_LINES)) ?? [])]
}

/** @returns undefined if there is nothing to show, such as bytes of runs that send none */
function overInputs(plot: (typeof MEASURED)[number], groups: readonly Group[]): Figure | undefined {
  const { isLog } = plot.y
  const rows = curvesOf(groups, plot.name, isLog)
  if (rows.length === 0) return undefined
  const labels = groups.map(({ label }) => label)
  const absent = labels.filter(label => !rows.some(({ run }) => run === label))
  const caption = `${plot.caption}${absent.length > 0 ? ` Not shown, because never above zero: ${absent.join(', ')}.` : ''}`
  // An algorithm has the same colour in every report.
  const isByAlgorithm = groups.every(({ varied }) => Object.keys(varied).join() === 'algorithm')
  const places = groups.map(({ runs }, i) => (isByAlgorithm ? algorithms[runs[0].scenario.algorithm].series - 1 : i))
  const axes = { ...plot, caption, x: { title: 'inputs', isLog: true } }
  return figureOf(axes, rows, labels, { marks: marksOf(rows, labels), places })
}

/** A plot for each key that was varied over enough numbers: the final regret per input. */
function byKeys(groups: readonly Group[]): Figure[] {
  const keys = [...new Set(groups.flatMap(({ varied }) => Object.keys(varied)))]
  return keys
    .map(key => ({ key, rows: outcomesOf(groups, key) }))
    .filter(({ rows }) => new Set(rows.map(row => row.x)).size >= MIN_VALUES)
    .slice(0, MAX_KEYS)
    .map(({ key, rows }) => {
      const values = [...new Set(rows.map(({ x }) => x))]
      const isLogX = Math.min(...values) > 0 && Math.max(...values) >= 8 * Math.min(...values)
      const isLogY = rows.every(({ least }) => least > 0)
      const plot = {
        name: `by-${key.replaceAll('.', '-')}`,
        title: `Regret per input by ${key}`,
        caption: `Average loss above the best predictor’s at the end of the runs, by ${key}.`,
        x: { title: key, isLog: isLogX, values },
        y: { title: 'regret per input', isLog: isLogY, format: '~g' }
      }
      return figureOf(plot, rows, [...new Set(rows.map(({ run }) => run))], { marks: rows })
    })
}

/** Final regret per input of the runs in which a key was varied over numbers. */
export function outcomesOf(groups: readonly Group[], key: string): CurveRow[] {
  return groups.flatMap(({ varied, runs }) => {
    const { [key]: x, ...others } = varied
    if (typeof x !== 'number') return []
    const { mean, least, most } = spreadOf(runs.map(({ result }) => MEASURES.excess(result)))
    return [{ x, run: labelOf(others), value: mean, least, most }]
  })
}

/** The points with marks: each line has some, at other inputs than the lines beside it, so that no mark hides another one. */
export function marksOf(rows: readonly CurveRow[], labels: readonly string[]): CurveRow[] {
  if (labels.length === 1) return []
  const places = [...new Set(rows.map(({ x }) => x))].sort((a, b) => a - b)
  const turns = Math.min(labels.length, SERIES.length)
  return rows.filter(({ run, x }) => (places.length - 1 - places.indexOf(x)) % turns === labels.indexOf(run) % turns)
}

/** @param places numbers of the lines' colours and shapes. @default in their order */
function figureOf(
  plot: Plot,
  rows: readonly CurveRow[],
  labels: readonly string[],
  { marks, places = [...labels.keys()] }: { readonly marks: readonly CurveRow[]; readonly places?: readonly number[] }
): Figure {
  const { name, title, x, y } = plot
  const isSpread = rows.some(({ least, most }) => most > least)
  const caption = `${plot.caption}${isSpread ? ' Lines are means over seeds; bands are from minimum to maximum.' : ''}`
  const scale = (isLog: boolean) => (isLog ? { type: 'log', nice: false } : { zero: false })
  const run = (range: readonly unknown[]) => ({
    field: 'run',
    type: 'nominal',
    scale: { domain: labels, range: places.map(place => range[place % range.length]) },
    legend:
      labels.length > 1
        ? { title: null, orient: 'bottom', columns: columnsFor(labels), symbolOpacity: 1, symbolSize: 80 }
        : null
  })
  const dashes = places.map(place => DASHES[Math.floor(place / SERIES.length) % DASHES.length])
  const vertical = {
    field: 'value',
    type: 'quantitative',
    axis: { title: y.title, tickCount: 6, format: y.format },
    scale: scale(y.isLog)
  }
  const color = run(SERIES)
  const axis = { title: x.title, format: '~s', tickCount: 6, ...(x.values && { values: x.values, format: '~r' }) }
  const spec = {
    title,
    width: 420,
    height: 270,
    data: { values: rows },
    encoding: { x: { field: 'x', type: 'quantitative', axis, scale: { ...scale(x.isLog), padding: 4 } }, color },
    layer: [
      {
        mark: { type: 'area', opacity: isSpread ? 0.16 : 0 },
        encoding: { y: { ...vertical, field: 'least' }, y2: { field: 'most' }, detail: { field: 'run' } }
      },
      {
        mark: { type: 'line', strokeWidth: 2 },
        encoding: { y: vertical, strokeDash: { ...run(dashes), scale: { domain: labels, range: dashes } } }
      },
      {
        data: { name: 'marks', values: marks },
        mark: { type: 'point', filled: true, size: 52, opacity: 1 },
        encoding: { y: vertical, shape: run(SHAPES) }
      }
    ]
  }
  return { name, title, caption, isWide: false, spec: spec as unknown as TopLevelSpec }
}

/** Number of legend columns that fit below a plot. */
function columnsFor(labels: readonly string[]): number {
  const longest = Math.max(...labels.map(({ length }) => length))
  return Math.max(1, Math.min(4, Math.floor(440 / (34 + 6.6 * longest))))
}

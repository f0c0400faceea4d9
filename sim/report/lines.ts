/** Line plots over the number of inputs, with a line per group of runs. */
import type { TopLevelSpec } from '#vega-lite'
import { type CurveRow, curvesOf, type Group, type Measure } from './groups.js'
import type { Figure } from './render.js'
import { stylesOf } from './styles.js'
import { colour, DASHES, SERIES } from './theme.js'

/** Number of lines with distinct colours and dashes. */
export const MAX_LINES = SERIES.length * DASHES.length

interface LinePlot {
  readonly measure: Measure
  readonly title: string
  readonly axis: string
  readonly caption: string
  readonly isLog: boolean
  /** Number format on the axis. */
  readonly tick: string
  /** Number format in tooltips. */
  readonly format: string
}

const LINE_PLOTS: readonly LinePlot[] = [
  {
    measure: 'regret',
    title: 'Regret',
    axis: 'regret',
    caption:
      'Loss of all served predictions minus that of the best predictor. On these axes a power law is a straight line; regret proportional to the square root of the inputs has slope ½.',
    isLog: true,
    tick: '~s',
    format: ',.4~r'
  },
  {
    measure: 'averageLoss',
    title: 'Average loss',
    axis: 'loss per input',
    caption: 'Loss per input so far.',
    isLog: false,
    tick: '.2f',
    format: '.5f'
  },
  {
    measure: 'excess',
    title: 'Average loss above the best predictor’s',
    axis: 'regret per input',
    caption: 'Regret divided by the number of inputs.',
    isLog: true,
    tick: '~g',
    format: '.3~g'
  },
  {
    measure: 'updates',
    title: 'Updates',
    axis: 'updates',
    caption: 'Updates of the best predictor that any node holds.',
    isLog: true,
    tick: '~s',
    format: ',.4~r'
  },
  {
    measure: 'bytes',
    title: 'Bytes sent',
    axis: 'bytes, all nodes',
    caption: 'Bytes of all messages of all nodes so far.',
    isLog: true,
    tick: '~s',
    format: '.3~s'
  }
]

/** @param groups at most MOST_LINES */
export function lineFigures(groups: readonly Group[]): Figure[] {
  return LINE_PLOTS.flatMap(plot => lineFigure(plot, groups) ?? [])
}

/** @returns undefined if there is nothing to show, such as bytes of runs that send none */
function lineFigure(plot: LinePlot, groups: readonly Group[]): Figure | undefined {
  const { measure, title, isLog, format } = plot
  const values = curvesOf(groups, measure, isLog)
  if (values.length === 0) return undefined
  const all = curvesOf(groups, measure, false)
  const absent = groups.filter(({ label }) => !values.some(({ run }) => run === label)).map(({ label }) => label)
  const comparators = [...new Set(groups.flatMap(({ runs }) => runs.map(({ result }) => result.comparatorLoss)))]
  const hasRule = measure === 'averageLoss' && comparators.length === 1
  const caption = [
    plot.caption,
    hasRule ? 'The dashed line is the best predictor’s average loss over the whole run.' : '',
    isLog && absent.length === 0 && values.length < all.length
      ? 'Points that are not above zero are omitted, as the axis is logarithmic.'
      : '',
    absent.length > 0 ? `Not shown, because never above zero: ${absent.join(', ')}.` : '',
    groups.some(({ runs }) => runs.length > 1) ? 'Lines are means over seeds; bands are from minimum to maximum.' : ''
  ]
  const y = { axis: { title: plot.axis, tickCount: 6, format: plot.tick }, scale: scaleOf(isLog) }
  const styles = stylesOf(groups)
  const run = { field: 'run', type: 'nominal', scale: { domain: groups.map(({ label }) => label) } } as const
  const colourOf = {
    ...run,
    scale: { ...run.scale, range: styles.map(style => style.colour) },
    legend:
      groups.length > 1
        ? { title: null, orient: 'bottom', columns: columnsFor(groups), symbolOpacity: 1, symbolSize: 80 }
        : null
  }
  const faded = { condition: { param: 'picked', value: 1 }, value: 0.12 }
  const x = { field: 'inputs', type: 'quantitative', scale: { type: 'log', nice: false, domain: rangeOf(groups) } }
  const spec = {
    title,
    description: caption.filter(Boolean).join(' '),
    width: 420,
    height: 270,
    data: { name: 'curves', values },
    encoding: { x: { ...x, axis: { title: 'inputs', format: '~s', tickCount: 6 } } },
    layer: [
      ...(hasRule ? [comparatorRule(comparators[0])] : []),
      {
        params: [{ name: 'picked', select: { type: 'point', fields: ['run'] }, bind: 'legend' }],
        mark: { type: 'line', strokeWidth: 2, strokeJoin: 'round' },
        encoding: {
          y: { field: 'value', type: 'quantitative', ...y },
          color: colourOf,
          strokeDash: {
            ...run,
            scale: { ...run.scale, range: styles.map(({ dash }) => dash) },
            legend: colourOf.legend
          },
          opacity: faded
        }
      },
      {
        data: { name: 'marks', values: marksOf(values, groups) },
        mark: { type: 'point', filled: true, size: 52, opacity: 1 },
        encoding: {
          y: { field: 'value', type: 'quantitative', ...y },
          color: colourOf,
          shape: {
            ...run,
            scale: { ...run.scale, range: styles.map(({ shape }) => shape) },
            legend: colourOf.legend
          },
          opacity: faded
        }
      },
      ...(groups.some(({ runs }) => runs.length > 1)
        ? [
            {
              mark: { type: 'area', opacity: 0.16 },
              encoding: {
                y: { field: 'least', type: 'quantitative', ...y },
                y2: { field: 'most' },
                color: colourOf,
                detail: { field: 'run' }
              }
            }
          ]
        : []),
      {
        params: [
          {
            name: 'near',
            select: { type: 'point', encodings: ['x'], nearest: true, on: 'pointerover', clear: 'pointerout' }
          }
        ],
        mark: { type: 'point', filled: true, size: 46 },
        encoding: {
          y: { field: 'value', type: 'quantitative', ...y },
          color: colourOf,
          opacity: { condition: { param: 'near', empty: false, value: 1 }, value: 0 },
          tooltip: [
            { field: 'run', title: 'run' },
            { field: 'inputs', title: 'inputs', format: ',' },
            { field: 'value', title: plot.axis, format }
          ]
        }
      }
    ]
  }
  return { name: measure, title, caption: spec.description, isWide: false, spec: spec as TopLevelSpec }
}

function scaleOf(isLog: boolean): object {
  return isLog ? { type: 'log', nice: false } : { zero: false }
}

/** Inputs of the first and the last point, so that all plots have the same x axis. */
function rangeOf(groups: readonly Group[]): [number, number] {
  const inputs = groups.flatMap(({ runs }) => runs.flatMap(({ result }) => result.curve.map(point => point.inputs)))
  return [Math.min(...inputs), Math.max(...inputs)]
}

/** The points with marks: each line has some, at other inputs than the lines beside it, so that no mark hides another one. */
function marksOf(rows: readonly CurveRow[], groups: readonly Group[]): CurveRow[] {
  if (groups.length === 1) return []
  const inputs = [...new Set(rows.map(row => row.inputs))].sort((a, b) => a - b)
  const turn = new Map(groups.map(({ label }, place) => [label, place % SERIES.length]))
  const turns = Math.min(groups.length, SERIES.length)
  return rows.filter(row => (inputs.length - 1 - inputs.indexOf(row.inputs)) % turns === turn.get(row.run))
}

/** A horizontal line at the best predictor's average loss, if all runs have the same inputs. */
function comparatorRule(loss: number): object {
  return {
    data: { values: [{ loss }] },
    mark: { type: 'rule', strokeDash: [4, 4], color: colour('muted') },
    encoding: { x: null, y: { field: 'loss', type: 'quantitative', scale: scaleOf(false) } }
  }
}

/** Number of legend columns that fit below a plot. */
function columnsFor(groups: readonly Group[]): number {
  const longest = Math.max(...groups.map(({ label }) => label.length))
  return Math.max(1, Math.min(4, Math.floor(440 / (34 + 6.6 * longest))))
}

/**
 * The plots of a report. Line plots are all in one style: a line for each group of runs, over the inputs or over a varied number.
 * The space-time view has a row for each node, and colours for the predictor that it held over time among its rivals.
 */
import { algorithms, averageOf } from '../index.js'
import { line, path, plot, text } from './svg.js'
import { type CurveRow, curvesOf, type Group, labelOf, MEASURES, type Measure, spreadOf } from './tables.js'
import { type Colour, colour, DASHES, SERIES, SHAPES } from './theme.js'
import type { PredictorEntry, Span, Timeline } from './timeline.js'

export interface Figure {
  /** Name of its file and id of its element in the page. */
  readonly name: string
  readonly caption: string
  /** Whether the figure takes the full width of the page. */
  readonly isWide: boolean
  /** With colours as CSS variables. */
  readonly svg: string
}

/** Number of lines with distinct colours and dashes. */
export const MAX_LINES = SERIES.length * DASHES.length
/** Maximum number of plots over varied numbers, and minimum number of values for one. */
const MAX_KEYS = 4
const MIN_VALUES = 3

/** A line beside its name. */
const KEY_LINE = [
  [-13, 0],
  [9, 0]
] as const

interface Plot {
  readonly name: string
  readonly title: string
  readonly caption: string
  readonly x: { readonly title: string; readonly isLog: boolean; readonly values?: readonly number[] }
  readonly y: { readonly title: string; readonly isLog: boolean }
}

/** What is plotted over the number of inputs. */
type MeasuredPlot = Omit<Plot, 'name' | 'x'> & { readonly name: Measure }
const REGRET: MeasuredPlot = {
  name: 'regret',
  title: 'Regret',
  caption:
    'Loss of all served predictions minus that of the best predictor. On these axes a power law is a straight line; regret proportional to the square root of the inputs has slope ½.',
  y: { title: 'regret', isLog: true }
}
const MEASURED: readonly MeasuredPlot[] = [
  REGRET,
  {
    name: 'averageLoss',
    title: 'Average loss',
    caption: 'Loss per input so far.',
    y: { title: 'loss per input', isLog: false }
  },
  {
    name: 'updates',
    title: 'Updates',
    caption: 'Updates of the best predictor that any node holds.',
    y: { title: 'updates', isLog: true }
  },
  {
    name: 'bytes',
    title: 'Bytes sent',
    caption: 'Bytes of all messages of all nodes so far.',
    y: { title: 'bytes, all nodes', isLog: true }
  }
]

/** @param groups the first ones are plotted over the inputs, as many as can be told apart */
export function figuresOf(groups: readonly Group[]): Figure[] {
  const shown = groups.slice(0, MAX_LINES)
  const hasDuration = groups.every(({ runs }) => runs[0].scenario.duration !== undefined)
  return [
    ...byKeys(groups),
    ...MEASURED.flatMap(plot => overRuns(plot, shown, 'inputs') ?? []),
    (hasDuration && overRuns(REGRET, shown, 'virtualMs')) || []
  ].flat()
}

/** @returns undefined if there is nothing to show, such as bytes of runs that send none */
function overRuns(plot: MeasuredPlot, all: readonly Group[], over: 'inputs' | 'virtualMs'): Figure | undefined {
  const { isLog } = plot.y
  const isByAlgorithm = all.every(({ varied }) => Object.keys(varied).join() === 'algorithm')
  const newest = isByAlgorithm && plot === REGRET ? newestOf(all) : []
  const groups = [...all, ...newest]
  const rows = curvesOf(groups, plot.name, isLog, over)
  if (rows.length === 0) return undefined
  const labels = groups.map(({ label }) => label)
  const absent = labels.filter(label => !rows.some(({ run }) => run === label))
  const caption = `${plot.caption}${absent.length > 0 ? ` Not shown, because never above zero: ${absent.join(', ')}.` : ''}`
  // An algorithm has the same colour in every report. Those of others have dashes, and those that predict with their newest
  // predictor, unlike in their paper.
  const places = groups.map(({ runs }, i) => {
    if (!isByAlgorithm) return i
    const { series, family } = algorithms[runs[0].scenario.algorithm]
    return series - 1 + (i < all.length && family === 'papers' ? 0 : SERIES.length)
  })
  const isByTime = over === 'virtualMs'
  const axes = {
    ...plot,
    ...(isByTime && { name: `${plot.name}ByTime`, title: `${plot.title} by time` }),
    caption,
    x: { title: isByTime ? 'virtual time, ms' : 'inputs', isLog: true }
  }
  return figureOf(axes, rows, labels, { marks: marksOf(rows, labels), places })
}

/** The groups whose algorithms predict with an average as in their papers, with the regret of the newest predictors. */
function newestOf(groups: readonly Group[]): Group[] {
  const averaged = groups.filter(
    ({ runs: [{ scenario }] }) => scenario.average === 'paper' && averageOf(scenario) !== 'none'
  )
  return averaged.map(({ label, varied, runs }) => ({
    label: `${label}, w_j`,
    varied,
    runs: runs.map(run => {
      const curve = run.result.curve.map(point => ({ ...point, regret: point.newestRegret }))
      return { ...run, result: { ...run.result, curve } }
    })
  }))
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
        y: { title: 'regret per input', isLog: isLogY }
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
function marksOf(rows: readonly CurveRow[], labels: readonly string[]): CurveRow[] {
  if (labels.length === 1) return []
  const places = [...new Set(rows.map(({ x }) => x))].sort((a, b) => a - b)
  const turns = Math.min(labels.length, SERIES.length)
  return rows.filter(({ run, x }) => (places.length - 1 - places.indexOf(x)) % turns === labels.indexOf(run) % turns)
}

/** @param places numbers of the lines' colours and shapes. @default in their order */
export function figureOf(
  { name, title, x, y, ...about }: Plot,
  rows: readonly CurveRow[],
  labels: readonly string[],
  { marks, places = [...labels.keys()] }: { readonly marks: readonly CurveRow[]; readonly places?: readonly number[] }
): Figure {
  const isSpread = rows.some(({ least, most }) => most > least)
  const caption = `${about.caption}${isSpread ? ' Lines are means over seeds; bands are from minimum to maximum.' : ''}`
  const styles = places.map(place => ({
    paint: SERIES[place % SERIES.length],
    shape: SHAPES[place % SHAPES.length],
    dash: DASHES[Math.floor(place / SERIES.length) % DASHES.length]
  }))
  const symbolOf = (i: number) => `<path d="${styles[i].shape}" fill="${styles[i].paint}"/>`
  const strokeOf = (points: Parameters<typeof path>[0], i: number) => {
    const { paint, dash } = styles[i]
    return path(points, `fill="none" stroke="${paint}" stroke-width="2"${dash && ` stroke-dasharray="${dash}"`}`)
  }
  const range = (values: readonly number[]) => [Math.min(...values), Math.max(...values)] as const
  const frame = {
    ...{ name, title, caption, width: 420, height: 270, hasGrid: true },
    x: { ...x, domain: range(rows.map(row => row.x)), ticks: x.values },
    y: { ...y, domain: range(rows.flatMap(({ least, most }) => [least, most])) },
    key: labels.length > 1 ? labels.map((label, i) => ({ label, symbol: symbolOf(i) + strokeOf(KEY_LINE, i) })) : []
  }
  const svg = plot(frame, at =>
    labels.flatMap((label, i) => {
      const own = rows.filter(({ run }) => run === label)
      if (own.length === 0) return []
      const edge = (key: 'value' | 'least' | 'most') => own.map(row => [at.x(row.x), at.y(row[key])] as const)
      const { paint } = styles[i]
      const band = [...edge('least'), ...edge('most').reverse()]
      const points = marks.filter(({ run }) => run === label)
      return [
        ...(isSpread ? [path(band, `fill="${paint}" fill-opacity="0.16"`)] : []),
        strokeOf(edge('value'), i),
        ...points.map(row => `<g transform="translate(${at.x(row.x)},${at.y(row.value)})">${symbolOf(i)}</g>`)
      ]
    })
  )
  return { name, caption, isWide: false, svg }
}

/** Colours of the spans by the standing of the predictor. */
const STANDINGS = {
  'starting predictor': 'first',
  'held most (odd update)': 'wave-1',
  'held most (even update)': 'wave-2',
  'first rival': 'rival-1',
  'second rival': 'rival-2',
  'further rivals': 'rival-3',
  away: 'away'
} as const satisfies Record<string, Colour>
type Standing = keyof typeof STANDINGS

/** @param label of the run @param name of its file @param nodes of the network, of which the timeline may have some */
export function spaceTime(
  { from, until, order, spans, marks }: Timeline,
  { label, name, nodes }: { readonly label: string; readonly name: string; readonly nodes: number }
): Figure {
  const standing = standingsOf(spans)
  const row = new Map(order.map((node, index) => [node, index]))
  const isCut = marks[0]?.time === from
  const title = `${isCut ? 'A partition' : 'The start'}: predictors held by the nodes, ${label}`
  const caption = [
    'Light and dark blue alternate: of all predictors with the same number of updates, the one held longest in total.',
    'Other colours: rivals with the same number of updates.',
    isCut ? 'Nodes are grouped by the sides of the partition.' : '',
    order.length < nodes ? `${order.length} of ${nodes} nodes are shown, evenly spaced.` : ''
  ]
    .filter(Boolean)
    .join(' ')
  const states = (Object.keys(STANDINGS) as Standing[])
    .map(state => ({ state, cells: spans.filter(({ held }) => standing(held) === state) }))
    .filter(({ cells }) => cells.length > 0)
  const paint = (state: Standing) => `fill="${colour(STANDINGS[state])}"`
  const height = Math.max(90, Math.min(320, order.length * 12))
  const isNumbered = order.every((node, index) => node === index)
  const frame = {
    ...{ name, title, caption, width: 930, height, hasGrid: false },
    x: { title: 'virtual time, ms', domain: [from, until] as const },
    y: { title: 'node', domain: [order.length, 0] as const, ...(!isNumbered && { ticks: [] }) },
    key: states.map(({ state }) => ({ label: state, symbol: `<path d="${SHAPES[1]}" ${paint(state)}/>` }))
  }
  const svg = plot(frame, at => {
    const cell = ({ node, from: start, until: end }: Span) => {
      const [left, top] = [at.x(start), at.y(row.get(node) as number)]
      return `M${left},${top}H${at.x(end)}V${at.y((row.get(node) as number) + 1)}H${left}Z`
    }
    return [
      ...states.map(({ state, cells }) => `<path d="${cells.map(cell).join('')}" ${paint(state)}/>`),
      ...marks
        .filter(({ time }) => time > from && time < until)
        .map(({ time, what }) => {
          const stroke = ` stroke="${colour('ink')}" stroke-width="1.5" stroke-dasharray="4,3"`
          return line(at.x(time), 0, at.x(time), height, stroke) + text(at.x(time) + 4, -4, what, 'ink')
        })
    ]
  })
  return { name, caption, isWide: true, svg }
}

/** The standing of each predictor among those with the same number of updates, by the total time that nodes held it. */
export function standingsOf(spans: readonly Span[]): (held: PredictorEntry | undefined) => Standing {
  const times = new Map<number, { held: PredictorEntry; time: number }>()
  for (const { held, from, until } of spans) {
    if (held === undefined) continue
    const entry = times.get(held.id) ?? { held, time: 0 }
    entry.time += until - from
    times.set(held.id, entry)
  }
  const ranks = new Map<number, number>()
  const seen = new Map<number, number>()
  for (const { held } of [...times.values()].sort((a, b) => b.time - a.time || a.held.id - b.held.id)) {
    const rank = seen.get(held.updates) ?? 0
    ranks.set(held.id, rank)
    seen.set(held.updates, rank + 1)
  }
  return held => {
    if (held === undefined) return 'away'
    if (held.updates === 0) return 'starting predictor'
    const rank = ranks.get(held.id)
    if (rank === 0) return held.updates % 2 === 1 ? 'held most (odd update)' : 'held most (even update)'
    return rank === 1 ? 'first rival' : rank === 2 ? 'second rival' : 'further rivals'
  }
}

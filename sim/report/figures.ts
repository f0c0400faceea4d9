/**
 * The plots of a report: Vega-Lite specifications, which are compiled and rendered as SVG without a browser or a canvas. Line
 * plots are all in one style: a line for each group of runs, over the inputs or over a varied number. The space-time view has a
 * row for each node, and colours for the predictor that it held over time among its rivals.
 */
import { loader, parse, View } from '#vega'
import { compile, type TopLevelSpec } from '#vega-lite'
import { algorithms } from '../index.js'
import { type CurveRow, curvesOf, type Group, labelOf, MEASURES, type Measure, spreadOf } from './tables.js'
import { CONFIG, type Colour, colour, DASHES, SERIES, SHAPES } from './theme.js'
import type { PredictorEntry, Span, Timeline } from './timeline.js'

interface Figure {
  /** Name of its file and id of its element in the page. */
  readonly name: string
  readonly title: string
  /** Description of the plot, for the page and for screen readers. */
  readonly caption: string
  /** Whether the figure takes the full width of the page. */
  readonly isWide: boolean
  readonly spec: TopLevelSpec
}

export interface Drawing extends Figure {
  /** With colours as CSS variables. */
  readonly svg: string
}

export async function draw(figure: Figure): Promise<Drawing> {
  const { $schema: _, ...vega } = compile({ ...figure.spec, config: CONFIG } as TopLevelSpec).spec
  const view = new View(parse(vega), { renderer: 'none', loader: loader({ mode: 'file' }) })
  const svg = await view.toSVG()
  view.finalize()
  return { ...figure, svg: described(rounded(withoutRoles(svg)), figure) }
}

/** Removes the roles of the parts, since the drawing is a single image with a title and a description. */
function withoutRoles(svg: string): string {
  return svg.replace(/ (?:role|aria-[a-z]+)="[^"]*"/g, '')
}

/** Rounds lengths to a hundredth of a pixel. */
function rounded(svg: string): string {
  return svg.replace(/ d="[^"]*"/g, path =>
    path.replace(/\d+\.\d{3,}(?:e-?\d+)?/g, text => `${Number(Number(text).toFixed(2))}`)
  )
}

/** Adds title and description to the SVG, for screen readers. */
function described(svg: string, { name, title, caption }: Figure): string {
  const head = `<title id="${name}-title">${escaped(title)}</title><desc id="${name}-desc">${escaped(caption)}</desc>`
  return svg.replace(
    /^<svg([^>]*)>/,
    (_, attributes: string) => `<svg${attributes} role="img" aria-labelledby="${name}-title ${name}-desc">${head}`
  )
}

/** Escapes text for HTML and XML. */
export function escaped(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, letter => entities[letter])
}

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
function marksOf(rows: readonly CurveRow[], labels: readonly string[]): CurveRow[] {
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
  const cells = spans.map(({ node, from: start, until: end, held }) => {
    const at = row.get(node) as number
    return { row: at, below: at + 1, from: start, until: end, state: standing(held) }
  })
  const isCut = marks[0]?.time === from
  const title = `${isCut ? 'A partition' : 'The start'}: predictors held by the nodes, ${label}`
  const caption = [
    'Light and dark blue alternate: of all predictors with the same number of updates, the one held longest in total.',
    'Other colours: rivals with the same number of updates.',
    isCut ? 'Nodes are grouped by the sides of the partition.' : '',
    order.length < nodes ? `${order.length} of ${nodes} nodes are shown, evenly spaced.` : ''
  ]
  const used = (Object.keys(STANDINGS) as Standing[]).filter(one => cells.some(({ state }) => state === one))
  const x = { type: 'quantitative', scale: { domain: [from, until], nice: false } } as const
  const y = { type: 'quantitative', scale: { domain: [0, order.length], reverse: true, nice: false } } as const
  const isNumbered = order.every((node, index) => node === index)
  const inside = marks
    .filter(({ time }) => time > from && time < until)
    .map(({ time: at, what: text }) => ({ at, text }))
  const spec = {
    title,
    width: 930,
    height: Math.max(90, Math.min(320, order.length * 12)),
    layer: [
      {
        data: { values: cells },
        mark: { type: 'rect' },
        encoding: {
          x: { ...x, field: 'from', axis: { title: 'virtual time, ms', grid: false, tickCount: 12 } },
          x2: { field: 'until' },
          y: {
            ...y,
            field: 'row',
            axis: { title: 'node', grid: false, ticks: false, labels: isNumbered, tickCount: 5 }
          },
          y2: { field: 'below' },
          color: {
            field: 'state',
            type: 'nominal',
            scale: { domain: used, range: used.map(one => colour(STANDINGS[one])) },
            legend: { title: null, orient: 'bottom', columns: 7, symbolType: 'square', symbolSize: 120, labelLimit: 0 }
          }
        }
      },
      {
        data: { values: inside },
        mark: { type: 'rule', color: colour('ink'), strokeWidth: 1.5, strokeDash: [4, 3] },
        encoding: { x: { ...x, field: 'at' } }
      },
      {
        data: { values: inside },
        mark: { type: 'text', align: 'left', dx: 4, dy: -7, y: 0, color: colour('ink'), fontSize: 11 },
        encoding: { x: { ...x, field: 'at' }, text: { field: 'text' } }
      }
    ]
  }
  const isWide = true
  return { name, title, caption: caption.filter(Boolean).join(' '), isWide, spec: spec as unknown as TopLevelSpec }
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

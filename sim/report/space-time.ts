/** The space-time view: a row for each node, and colours for the predictor that it held over time among its rivals. */
import type { TopLevelSpec } from '#vega-lite'
import type { Figure } from './render.js'
import { type Colour, colour } from './theme.js'
import type { PredictorEntry, Span, Timeline } from './timeline.js'

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

/** The detailed view of a timeline window: which of several predictors with the same number of updates each node held. */
import type { Figure } from './render.js'
import { milliseconds, spaceTime, type ViewOf } from './space-time.js'
import type { Colour } from './theme.js'
import type { PredictorEntry, Span, Window } from './timeline.js'

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

export function windowView(
  { kind, from, until, order, spans, marks }: Window,
  { label, name, sample }: ViewOf
): Figure {
  const standing = standingsOf(spans)
  const row = new Map(order.map((node, index) => [node, index]))
  const cells = spans.map(({ node, from: start, until: end, held }) => ({
    node,
    row: row.get(node) as number,
    from: start,
    until: end,
    state: standing(held),
    predictor: held === undefined ? 'away' : describe(held)
  }))
  const isCut = kind === 'fault' && marks.some(({ what, time }) => what === 'cut' && time === from)
  const subject = kind === 'start' ? 'The start' : isCut ? 'A partition' : 'A node stops'
  const caption = [
    `Which predictor each node held, from ${milliseconds(from)} to ${milliseconds(until)} ms of virtual time.`,
    'Light and dark blue alternate: of all predictors with the same number of updates, the one held longest in total.',
    'Other colours: rivals with the same number of updates.',
    isCut ? 'Nodes are grouped by the sides of the partition.' : 'Nodes are in order of their numbers.',
    sample
  ]
  const used = (Object.keys(STANDINGS) as Standing[]).filter(name => cells.some(({ state }) => state === name))
  return spaceTime({
    name: `${name}-${kind === 'start' ? 'start' : 'fault'}`,
    title: `${subject}: predictors held by the nodes`,
    subtitle: label,
    caption: caption.filter(Boolean).join(' '),
    cells,
    rows: order.length,
    isNumbered: order.every((node, index) => node === index),
    range: [from, until],
    classes: used.map(name => ({ name, colour: STANDINGS[name] })),
    marks: marks.filter(({ time: at }) => at > from && at < until).map(({ time: at, what: text }) => ({ at, text })),
    cuts: [],
    tooltip: [
      { field: 'node', title: 'node' },
      { field: 'predictor', title: 'holds' },
      { field: 'from', title: 'from, ms', format: '.2~f' },
      { field: 'until', title: 'until, ms', format: '.2~f' }
    ]
  })
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
    switch (ranks.get(held.id)) {
      case 0:
        return held.updates % 2 === 1 ? 'held most (odd update)' : 'held most (even update)'
      case 1:
        return 'first rival'
      case 2:
        return 'second rival'
      default:
        return 'further rivals'
    }
  }
}

function describe({ updates, maker }: PredictorEntry): string {
  if (updates === 0) return 'the starting predictor'
  return maker === undefined ? `${updates} updates` : `${updates} updates, the last by node ${maker}`
}

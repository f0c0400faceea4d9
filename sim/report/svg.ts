/** Plots as SVG text: a frame of axes in which a drawing has its place, with a key below. Colours are CSS variables of the page. */
import { linearTicks, logLabels, logTicks, tickLabels } from '../../src/numeric/ticks.js'
import { colour } from './theme.js'

interface Axis {
  readonly title: string
  /** @default linear */
  readonly isLog?: boolean
  /** The values at its two ends: left and right, bottom and top. */
  readonly domain: readonly [from: number, to: number]
  /** @default round numbers */
  readonly ticks?: readonly number[]
}

export interface Frame {
  /** Name of the plot's file and id of its element in the page. */
  readonly name: string
  readonly title: string
  /** Description of the plot, for the page and for screen readers. */
  readonly caption: string
  /** Size of the drawing between the axes, in pixels. */
  readonly width: number
  readonly height: number
  readonly x: Axis
  readonly y: Axis
  readonly hasGrid: boolean
  /** Label, and a symbol around the origin. */
  readonly key: readonly { readonly label: string; readonly symbol: string }[]
}

/** The place of values in the drawing, in pixels. */
interface Place {
  x(value: number): number
  y(value: number): number
}

/** Space for the title, the labels of the axes, and a row of the key, in pixels. */
const [TOP, LEFT, RIGHT, BOTTOM, ROW] = [34, 66, 16, 54, 20]
/** Mean width of a letter of the key, and of a symbol with its spaces. */
const [LETTER, SYMBOL] = [6.6, 34]

/** Escapes text for HTML and XML. */
export function escaped(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, letter => entities[letter])
}

/** @param draw the content between the axes */
export function plot(frame: Frame, draw: (place: Place) => readonly string[]): string {
  const { name, title, caption, width, height, x, y, hasGrid, key } = frame
  const place = { x: scale(x, 0, width), y: scale(y, height, 0) }
  const longest = Math.max(0, ...key.map(({ label }) => label.length))
  const columns = Math.max(1, Math.min(width > 500 ? 8 : 4, Math.floor((width + 20) / (SYMBOL + LETTER * longest))))
  const total = [LEFT + width + RIGHT, TOP + height + BOTTOM + ROW * Math.ceil(key.length / columns)]
  const across = ticks(x, width).map(([value, label]) => {
    const at = place.x(value)
    return line(at, hasGrid && label ? 0 : height, at, height + 4) + text(at, height + 17, label, 'muted', 'middle')
  })
  const up = ticks(y, height).map(([value, label]) => {
    const at = place.y(value)
    return line(-4, at, hasGrid && label ? width : 0, at) + text(-8, at + 4, label, 'muted', 'end')
  })
  const entries = key.map(({ label, symbol }, i) => {
    const [left, top] = [(i % columns) * (SYMBOL + LETTER * longest), height + BOTTOM + ROW * Math.floor(i / columns)]
    return `<g transform="translate(${fixed(left)},${top})">${symbol}${text(12, 4, label, 'ink')}</g>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${total[0]}" height="${total[1]}" viewBox="0 0 ${total.join(' ')}" font-family="system-ui, sans-serif" font-size="11.5" role="img" aria-labelledby="${name}-title ${name}-desc"><title id="${name}-title">${escaped(title)}</title><desc id="${name}-desc">${escaped(caption)}</desc>
<g transform="translate(${LEFT},${TOP})">
${text(-LEFT + 6, -16, title, 'ink', 'start', ' font-size="14" font-weight="600"')}
<g stroke="${colour('grid')}">${across.join('')}${up.join('')}</g>
${draw(place).join('\n')}
${text(width / 2, height + 35, x.title, 'ink', 'middle')}
${text(-height / 2, -LEFT + 16, y.title, 'ink', 'middle', ' transform="rotate(-90)"')}
${entries.join('\n')}
</g>
</svg>`
}

/** A polygon, or a line through points. */
export function path(points: readonly (readonly [x: number, y: number])[], attributes: string): string {
  return `<path d="M${points.map(([x, y]) => `${x},${y}`).join('L')}" ${attributes}/>`
}

export function line(x1: number, y1: number, x2: number, y2: number, attributes = ''): string {
  return `<path d="M${x1},${y1}L${x2},${y2}"${attributes}/>`
}

export function text(
  x: number,
  y: number,
  content: string,
  fill: 'ink' | 'muted',
  anchor: 'start' | 'middle' | 'end' = 'start',
  attributes = ''
): string {
  if (content === '') return ''
  return `<text x="${fixed(x)}" y="${fixed(y)}" fill="${colour(fill)}" stroke="none" text-anchor="${anchor}"${attributes}>${escaped(content)}</text>`
}

function scale({ isLog, domain }: Axis, from: number, to: number): (value: number) => number {
  const of = isLog ? Math.log : (value: number) => value
  const [start, end] = domain.map(of)
  return value => fixed(start === end ? (from + to) / 2 : from + ((of(value) - start) / (end - start)) * (to - from))
}

/** Ticks with their labels. */
function ticks({ isLog, domain, ticks: given }: Axis, length: number): (readonly [number, string])[] {
  const [min, max] = [Math.min(...domain), Math.max(...domain)]
  const found = given ?? (isLog ? logTicks(min, max) : linearTicks(min, max))
  const one = (value: number) => tickLabels([value])[0]
  const labels = given ? given.map(String) : isLog ? logLabels(found, length, one) : tickLabels(found)
  return found.map((value, i) => [value, labels[i]])
}

/** Rounds a length to a hundredth of a pixel. */
function fixed(length: number): number {
  return Math.round(100 * length) / 100
}

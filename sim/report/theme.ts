/**
 * Colours and fonts of the plots. Specifications refer to colours as CSS variables, which the page defines for light and dark mode;
 * SVG files have the light colours, and a style sheet with the dark ones.
 */

/** Values of each colour on light and dark backgrounds. The series colours are distinguishable with colour blindness. */
export const COLOURS = {
  ground: ['#ffffff', '#14171c'],
  ink: ['#1b1f24', '#e6e8eb'],
  muted: ['#5b6570', '#9aa4b0'],
  rule: ['#d9dee4', '#333a44'],
  grid: ['#eceff2', '#242a32'],
  panel: ['#f6f7f9', '#1b2027'],
  accent: ['#1f5fa8', '#7db3ee'],
  good: ['#1d7a4f', '#5cc79a'],
  bad: ['#b3261e', '#ff8a80'],
  'series-1': ['#1f5fa8', '#74aef0'],
  'series-2': ['#d1602a', '#f2935f'],
  'series-3': ['#23856a', '#57c5a2'],
  'series-4': ['#9c4a93', '#d790cc'],
  'series-5': ['#b58900', '#e3c04f'],
  'series-6': ['#3f9fc6', '#8fd4ef'],
  'series-7': ['#6b7280', '#aab2bd'],
  'series-8': ['#7b4a2d', '#c79a78'],
  'wave-1': ['#c9dcf0', '#274a6e'],
  'wave-2': ['#8fb6de', '#3f74a8'],
  'rival-1': ['#e07b39', '#f2935f'],
  'rival-2': ['#9c4a93', '#d790cc'],
  'rival-3': ['#b58900', '#e3c04f'],
  first: ['#eceae4', '#2b2f36'],
  away: ['#3c434c', '#05070a']
} as const satisfies Record<string, readonly [light: string, dark: string]>

export type Colour = keyof typeof COLOURS

export function colour(name: Colour): string {
  return `var(--${name})`
}

export const SERIES: readonly string[] = ([1, 2, 3, 4, 5, 6, 7, 8] as const).map(n => colour(`series-${n}`))

/** Shapes of the marks on the lines, in the order of their colours. */
export const SHAPES: readonly string[] = [
  'circle',
  'square',
  'triangle-up',
  'diamond',
  'triangle-down',
  'cross',
  'M-0.35,-1.1H0.35V1.1H-0.35Z',
  'M-1,-0.7L-0.7,-1L0,-0.3L0.7,-1L1,-0.7L0.3,0L1,0.7L0.7,1L0,0.3L-0.7,1L-1,0.7L-0.3,0Z'
]

/** Lines after the eighth repeat the colours with dashes. */
export const DASHES: readonly (readonly number[])[] = [
  [1, 0],
  [6, 3],
  [2, 2]
]

/** Replaces the variables by plain colours, which all viewers know. Viewers that know style sheets have dark mode as well. */
export function inPlainColours(svg: string): string {
  const used = new Set<Colour>(['ground'])
  const plain = svg.replace(/var\(--([\w-]+)\)/g, (_, name: Colour) => {
    used.add(name)
    return COLOURS[name][0]
  })
  const rules = [...used].flatMap(name => {
    const [light, dark] = COLOURS[name]
    return ['fill', 'stroke'].map(property => `[${property}="${light}"]{${property}:${dark}}`)
  })
  const style = `<style>@media (prefers-color-scheme:dark){${rules.join('')}}</style>`
  const ground = `<rect width="100%" height="100%" fill="${COLOURS.ground[0]}"/>`
  return plain.replace('</desc>', `</desc>${style}${ground}`)
}

/** CSS declarations of the variables. */
export function declarations(which: 'light' | 'dark'): string {
  return Object.entries(COLOURS)
    .map(([name, [light, dark]]) => `--${name}:${which === 'light' ? light : dark}`)
    .join(';')
}

const FONT = 'system-ui, sans-serif'

/** Vega-Lite's `config` for all plots. */
export const CONFIG = {
  font: FONT,
  background: 'transparent',
  padding: 6,
  view: { stroke: null },
  title: {
    anchor: 'start',
    color: colour('ink'),
    fontSize: 14,
    fontWeight: 600,
    offset: 12
  },
  axis: {
    domainColor: colour('rule'),
    tickColor: colour('rule'),
    gridColor: colour('grid'),
    labelColor: colour('muted'),
    labelFontSize: 11,
    titleColor: colour('ink'),
    titleFontSize: 12,
    titleFontWeight: 400,
    titlePadding: 8,
    tickSize: 4
  },
  legend: {
    labelColor: colour('ink'),
    labelFontSize: 11.5,
    labelLimit: 240,
    titleColor: colour('muted'),
    titleFontSize: 11.5,
    titleFontWeight: 400,
    symbolSize: 160,
    symbolStrokeWidth: 2.2
  }
} as const

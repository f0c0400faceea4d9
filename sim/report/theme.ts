/**
 * Colours and shapes of the plots. Drawings refer to colours as CSS variables, which the page defines for light and dark
 * mode; SVG files have the light colours, and a style sheet with the dark ones.
 */

/** Values of each colour on light and dark backgrounds. The series colours are distinguishable with colour blindness. */
const COLOURS = {
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

/** Shapes of the marks on the lines, around the origin, in the order of their colours. */
export const SHAPES: readonly string[] = [
  'M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z',
  'M-3.5,-3.5h7v7h-7Z',
  'M-4.5,3.5h9L0,-4.5Z',
  'M0,-5L5,0L0,5L-5,0Z',
  'M-4.5,-3.5h9L0,4.5Z',
  'M-1.5,-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3Z',
  'M-1.3,-4.5h2.6v9h-2.6Z',
  'M-4,-2.8L-2.8,-4L0,-1.2L2.8,-4L4,-2.8L1.2,0L4,2.8L2.8,4L0,1.2L-2.8,4L-4,2.8L-1.2,0Z'
]

/** Lines after the eighth repeat the colours with dashes. */
export const DASHES: readonly string[] = ['', '6,3', '2,2']

/** Replaces the variables by plain colours, which all viewers know. Viewers that know style sheets have dark mode as well. */
function inPlainColours(svg: string): string {
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

/** An SVG file for any viewer. */
export function standalone(svg: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${inPlainColours(svg)}\n`
}

/** CSS declarations of the variables. */
function declarations(which: 'light' | 'dark'): string {
  return Object.entries(COLOURS)
    .map(([name, [light, dark]]) => `--${name}:${which === 'light' ? light : dark}`)
    .join(';')
}

/** One column of text, plots side by side if they fit, and light or dark colours by the reader's preference. */
export const STYLE = `
:root { color-scheme: light dark; ${declarations('light')} }
@media (prefers-color-scheme: dark) { :root { ${declarations('dark')} } }
* { box-sizing: border-box }
body {
  margin: 0 auto; padding: 3rem clamp(1rem, 4vw, 2.5rem) 4rem; max-width: 69rem;
  background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  -webkit-font-smoothing: antialiased;
}
h1 { margin: .2rem 0 .6rem; font-size: clamp(1.6rem, 4vw, 2.2rem); line-height: 1.15; letter-spacing: -.02em; text-wrap: balance }
h2 { margin: 3rem 0 .8rem; font-size: 1.2rem; letter-spacing: -.01em }
p { max-width: 46rem; margin: 0 0 .8rem; text-wrap: pretty }
dl + p, .scroll + details { margin-top: .9rem }
details p { margin-top: .4rem }
.eyebrow { margin: 0; color: var(--muted); font-size: .82rem; letter-spacing: .04em }
.lead { font-size: 1.08rem }
.lead::first-letter { text-transform: uppercase }
.note { color: var(--muted); font-size: .88rem }
a { color: var(--accent); text-underline-offset: .15em }
code { font: .86em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace }
pre { margin: 1.2rem 0 0; padding: .7rem .9rem; overflow-x: auto; background: var(--panel); border: 1px solid var(--rule); border-radius: 6px }
pre::before { content: "$ "; color: var(--muted); font: .86em/1.5 ui-monospace, monospace }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums }
th, td { padding: .42rem .38rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--grid) }
th:first-child, td:first-child { text-align: left; padding-left: 0 }
th:last-child, td:last-child { padding-right: 0 }
thead th { color: var(--muted); font-weight: 500; border-bottom: 1px solid var(--rule); cursor: help }
tbody th { font-weight: 600 }
tbody tr:hover { background: var(--panel) }
.good { color: var(--good) }
.bad { color: var(--bad); font-weight: 600 }
dl { columns: 16rem 3; column-gap: 2.5rem; margin: 0; font-size: .88rem; font-variant-numeric: tabular-nums }
dl div { display: flex; justify-content: space-between; gap: 1rem; padding: .22rem 0; border-bottom: 1px solid var(--grid); break-inside: avoid }
dt { color: var(--muted) }
dd { margin: 0; text-align: right }
dl .varied dt, dl .varied dd { color: var(--accent); font-weight: 600 }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); gap: 2.4rem 2rem; align-items: start }
figure { margin: 0; min-width: 0 }
figure.wide { grid-column: 1 / -1 }
figure svg { display: block; max-width: 100%; height: auto; overflow: visible }
figcaption { margin-top: .3rem; max-width: 44rem; color: var(--muted); font-size: .84rem; line-height: 1.45 }
figcaption a { white-space: nowrap }
footer { margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--rule) }
@media print { body { max-width: none; padding: 0 } figure { break-inside: avoid } }
`

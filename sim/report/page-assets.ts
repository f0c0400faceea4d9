/** The style sheet of the report page. */
import { declarations } from './theme.js'

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
dl + p { margin-top: .9rem }
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

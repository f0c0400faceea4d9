/** The report page: a single HTML file that loads nothing from the network. */
import type { Group } from './groups.js'
import { SCRIPT, STYLE } from './page-assets.js'
import { type Drawing, escaped } from './render.js'
import { findings, type Summary, type SummaryCell, summarise } from './summary.js'
import type { Cell } from './tables.js'
import { type ScenarioEntry, scenarioEntries } from './tables.js'
import type { Report } from './types.js'

export interface PageParts {
  readonly report: Report
  readonly groups: readonly Group[]
  readonly drawings: readonly Drawing[]
  /** Notes about runs and views that are not shown. */
  readonly notes: readonly string[]
  /** Names of the data files. */
  readonly files: readonly string[]
  /** The source of Vega, for the browser. */
  readonly vega: string
}

/** Forbids loading anything. Vega needs `unsafe-eval` to compile expressions. */
const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data:; base-uri 'none'"

export function pageOf({ report, groups, drawings, notes, files, vega }: PageParts): string {
  const lines = drawings.filter(({ isWide }) => !isWide)
  const wide = drawings.filter(({ isWide }) => isWide)
  const specs = Object.fromEntries(drawings.map(({ name, vega: spec }) => [name, spec]))
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<title>${escaped(report.title)} – admb simulation</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<p class="eyebrow">admb simulation report</p>
<h1>${escaped(report.title)}</h1>
${report.about === undefined ? '' : `<p class="lead">${escaped(report.about)}</p>`}
<p>${escaped(findings(groups))}</p>
<pre><code>${escaped(report.command)}</code></pre>
</header>
<main>
<section>
<h2>Results</h2>
${summaryTable(summarise(groups))}
</section>
<section>
<h2>Scenario</h2>
${scenarioTable(scenarioEntries(report.runs))}
</section>
<section>
<h2>Plots</h2>
<div class="figures">
${lines.map(figureOf).join('\n')}
</div>
</section>
${
  wide.length === 0
    ? ''
    : `<section>
<h2>Space and time</h2>
<div class="figures">
${wide.map(figureOf).join('\n')}
</div>
</section>`
}
</main>
<footer>
${notes.map(note => `<p class="note">${escaped(note)}</p>`).join('\n')}
<p class="note">Data: ${files.map(file => `<a href="${file}">${file}</a>`).join(', ')}.</p>
</footer>
<script>${inScript(vega)}</script>
<script type="application/json" id="plots">${JSON.stringify(specs).replaceAll('<', '\\u003c')}</script>
<script type="module">${SCRIPT}</script>
</body>
</html>
`
}

function summaryTable({ heads, rows }: Summary): string {
  const cell = ({ text, tone }: SummaryCell) => `<td${tone ? ` class="${tone}"` : ''}>${escaped(text)}</td>`
  return `<div class="scroll"><table>
<thead><tr><th scope="col">run</th>${heads.map(({ text, about }) => `<th scope="col" title="${escaped(about)}">${escaped(text)}</th>`).join('')}</tr></thead>
<tbody>
${rows.map(({ label, cells }) => `<tr><th scope="row">${escaped(label)}</th>${cells.map(cell).join('')}</tr>`).join('\n')}
</tbody>
</table></div>`
}

function scenarioTable(entries: readonly ScenarioEntry[]): string {
  const kind = ({ isVaried, isDefault }: ScenarioEntry) => (isVaried ? 'varied' : isDefault ? '' : 'changed')
  const legend = [
    entries.some(entry => kind(entry) === 'varied')
      ? '<span class="varied">Coloured: varied between the runs.</span>'
      : '',
    entries.some(entry => kind(entry) === 'changed') ? '<strong>Bold: not the default.</strong>' : ''
  ]
  const list = (shown: readonly ScenarioEntry[]) => `<dl>
${shown.map(entry => `<div class="${kind(entry)}"><dt>${entry.key}</dt><dd>${entry.values.map(showValue).join(', ')}</dd></div>`).join('\n')}
</dl>`
  const defaults = entries.filter(entry => kind(entry) === '')
  return `${list(entries.filter(entry => kind(entry) !== ''))}
<p class="note">${legend.join(' ')}</p>
<details><summary>${defaults.length} parameters with their defaults</summary>
${list(defaults)}
</details>`
}

function showValue(value: Cell): string {
  return escaped(
    typeof value === 'number' ? value.toLocaleString('en-US', { maximumFractionDigits: 6 }) : String(value)
  )
}

function figureOf({ name, caption, isWide, svg }: Drawing): string {
  return `<figure id="${name}"${isWide ? ' class="wide"' : ''}>
<div class="plot">${svg}</div>
<figcaption>${escaped(caption)} <a href="figures/${name}.svg">SVG</a></figcaption>
</figure>`
}

/** Escapes source code that would end its script element. */
function inScript(source: string): string {
  return source.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--')
}

/** The report page: a single HTML file without scripts that loads nothing from the network. */
import type { Group } from './groups.js'
import { STYLE } from './page-assets.js'
import { type Drawing, escaped } from './render.js'
import { type Summary, type SummaryCell, summarise } from './summary.js'
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
}

/** Forbids loading anything. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"

export function pageOf({ report, groups, drawings, notes, files }: PageParts): string {
  const lines = drawings.filter(({ isWide }) => !isWide)
  const wide = drawings.filter(({ isWide }) => isWide)
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

/** The keys that were varied or are not the default. */
function scenarioTable(entries: readonly ScenarioEntry[]): string {
  const shown = entries.filter(({ isVaried, isDefault }) => isVaried || !isDefault)
  return `<dl>
${shown.map(({ key, values, isVaried }) => `<div${isVaried ? ' class="varied"' : ''}><dt>${key}</dt><dd>${values.map(showValue).join(', ')}</dd></div>`).join('\n')}
</dl>
<p class="note">Coloured: varied between the runs. The other parameters have their defaults; runs.csv has all.</p>`
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

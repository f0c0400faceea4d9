/** The report page: a single HTML file without scripts that loads nothing from the network. */

import { describeTerms } from '../index.js'
import type { Figure } from './figures.js'
import { escaped } from './svg.js'
import {
  type Cell,
  flatten,
  type Group,
  type Report,
  type ReportedRun,
  type ScenarioEntry,
  scenarioEntries,
  spreadOf
} from './tables.js'
import { STYLE } from './theme.js'

interface PageParts {
  readonly report: Report
  readonly groups: readonly Group[]
  readonly figures: readonly Figure[]
  /** Notes about runs and views that are not shown. */
  readonly notes: readonly string[]
  /** Names of the data files. */
  readonly files: readonly string[]
}

/** Forbids loading anything. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"

export function pageOf({ report, groups, figures, notes, files }: PageParts): string {
  const lines = figures.filter(({ isWide }) => !isWide)
  const wide = figures.filter(({ isWide }) => isWide)
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

function summaryTable({ heads, rows, terms }: Summary): string {
  const cell = ({ text, tone }: SummaryCell) => `<td${tone ? ` class="${tone}"` : ''}>${escaped(text)}</td>`
  return `<div class="scroll"><table>
<thead><tr><th scope="col">run</th>${heads.map(({ text, about }) => `<th scope="col" title="${escaped(about)}">${escaped(text)}</th>`).join('')}</tr></thead>
<tbody>
${rows.map(({ label, cells }) => `<tr><th scope="row">${escaped(label)}</th>${cells.map(cell).join('')}</tr>`).join('\n')}
</tbody>
</table></div>
${terms.length === 0 ? '' : `<details class="note"><summary>Terms of the bounds</summary>\n${terms.map(note => `<p>${escaped(note)}</p>`).join('\n')}\n</details>`}`
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

function figureOf({ name, caption, isWide, svg }: Figure): string {
  return `<figure id="${name}"${isWide ? ' class="wide"' : ''}>
<div class="plot">${svg}</div>
<figcaption>${escaped(caption)} <a href="figures/${name}.svg">SVG</a></figcaption>
</figure>`
}

/** The table of the runs. */
interface SummaryCell {
  readonly text: string
  readonly tone?: 'good' | 'bad'
}

interface Summary {
  readonly heads: readonly { readonly text: string; readonly about: string }[]
  readonly rows: readonly { readonly label: string; readonly cells: readonly SummaryCell[] }[]
  /** Notes below the table. */
  readonly terms: readonly string[]
}

interface Column {
  readonly head: string
  readonly about: string
  cell(group: Group): SummaryCell
}

export function summarise(groups: readonly Group[]): Summary {
  const runs = groups.flatMap(group => group.runs)
  const serial = serialTwins(runs)
  const columns = COLUMNS.map(column =>
    column.head === '× serial' ? { ...column, cell: (group: Group) => ratioTo(serial, group) } : column
  ).filter(({ cell }) => groups.some(group => cell(group) !== NONE))
  return {
    heads: columns.map(({ head, about }) => ({ text: head, about })),
    rows: groups.map(group => ({ label: group.label, cells: columns.map(column => column.cell(group)) })),
    terms: termNotes(groups)
  }
}

const NONE: SummaryCell = { text: '–' }

const COLUMNS: readonly Column[] = [
  {
    head: 'regret',
    about: 'loss of all served predictions minus the best predictor’s',
    cell: group => spread(group, ({ result }) => result.regret, whole)
  },
  {
    head: 'with w_j',
    about: 'regret if the nodes had predicted with their newest predictors',
    cell: group => spread(group, ({ result }) => result.newestRegret, whole)
  },
  {
    head: '× serial',
    about: 'regret relative to the serial learner on the same scenario',
    cell: () => NONE
  },
  { head: 'bound', about: 'the theorem’s bound on the expected regret, where there is one', cell: bound },
  {
    head: 'average loss',
    about: 'loss per input',
    cell: group =>
      spread(
        group,
        ({ result }) => result.averageLoss,
        value => value.toFixed(5)
      )
  },
  {
    head: 'start',
    about: 'inputs served until every node had an updated predictor',
    cell: ({ runs }) => {
      const starts = runs.flatMap(({ result }) => result.startInputs ?? [])
      return starts.length === 0 ? NONE : { text: whole(spreadOf(starts).mean) }
    }
  },
  {
    head: 'updates',
    about: 'updates of the best predictor',
    cell: group => average(group, ({ result }) => result.updates, whole)
  },
  {
    head: 'used / held / discarded',
    about: 'shares of gradients: on the lineage of the best predictor, waiting for an update, given up',
    cell: ({ runs }) => {
      const shares = (['used', 'held', 'discarded'] as const).map(key =>
        spreadOf(runs.map(({ result }) => (100 * result[key]) / result.inputs)).mean.toFixed(1)
      )
      return { text: `${shares.join(' / ')} %` }
    }
  },
  {
    head: 'messages',
    about: 'messages of all nodes',
    cell: group => average(group, ({ result }) => result.messages, whole)
  },
  {
    head: 'MB sent',
    about: 'megabytes of all messages',
    cell: group =>
      average(
        group,
        ({ result }) => result.bytes / 1e6,
        value => value.toFixed(1)
      )
  },
  { head: 'violations', about: 'violated properties', cell: violationsOf }
]

/**
 * The terms of the bound of each group, which are too long for the table: the constants of the first run, gradients and inputs per update, the
 * sizes of both terms, and from where it is below log 2 per input.
 */
function termNotes(groups: readonly Group[]): string[] {
  return groups.flatMap(({ label, runs }) => {
    const terms = runs.find(({ result }) => result.boundTerms)?.result.boundTerms
    return terms ? [`${label}: ${describeTerms(terms)}.`] : []
  })
}

function whole(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 0 })
}

function average({ runs }: Group, value: (run: ReportedRun) => number, format: (value: number) => string): SummaryCell {
  return { text: format(spreadOf(runs.map(value)).mean) }
}

/** Mean ± standard deviation. */
function spread({ runs }: Group, value: (run: ReportedRun) => number, format: (value: number) => string): SummaryCell {
  const { mean, deviation } = spreadOf(runs.map(value))
  return { text: runs.length > 1 ? `${format(mean)} ± ${format(deviation)}` : format(mean) }
}

function bound({ runs }: Group): SummaryCell {
  const bounds = runs.flatMap(({ result }) => result.bound ?? [])
  if (bounds.length === 0) return NONE
  const mean = whole(spreadOf(bounds).mean)
  if (runs.every(({ result }) => result.bound === undefined || result.boundIsVacuous))
    return { text: `${mean} vacuous` }
  const isKept = runs.every(({ result }) => result.boundHolds !== false)
  return {
    text: `${mean} ${isKept ? '✓ holds' : '✗ exceeded'}`,
    tone: isKept ? 'good' : 'bad'
  }
}

function violationsOf({ runs }: Group): SummaryCell {
  const count = runs.reduce((sum, { result }) => sum + result.violations.length, 0)
  return { text: whole(count), tone: count > 0 ? 'bad' : undefined }
}

/** For each run, the regret of the serial run on the same scenario. */
function serialTwins(runs: readonly ReportedRun[]): Map<ReportedRun, number> {
  const key = ({ scenario }: ReportedRun) => JSON.stringify({ ...flatten(scenario), algorithm: '' })
  const serial = new Map(
    runs.filter(({ scenario }) => scenario.algorithm === 'serial').map(run => [key(run), run.result.regret])
  )
  const twins = new Map<ReportedRun, number>()
  for (const run of runs) {
    const regret = serial.get(key(run))
    if (regret !== undefined && run.scenario.algorithm !== 'serial') twins.set(run, regret)
  }
  return twins
}

function ratioTo(serial: ReadonlyMap<ReportedRun, number>, { runs }: Group): SummaryCell {
  const ratios = runs.flatMap(run => {
    const regret = serial.get(run)
    return regret === undefined || regret <= 0 ? [] : [run.result.regret / regret]
  })
  return ratios.length === 0 ? NONE : { text: spreadOf(ratios).mean.toFixed(2) }
}

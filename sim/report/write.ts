/** Writes a report: the page, the plots as SVG files, and the data. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { groupRuns } from './groups.js'
import { lineFigures, MAX_LINES } from './lines.js'
import { outcomeFigures } from './outcomes.js'
import { overview } from './overview.js'
import { pageOf } from './page.js'
import { draw, type Figure } from './render.js'
import { curveRows, runRows, spanRows, toCsv } from './tables.js'
import { inPlainColours } from './theme.js'
import type { Timeline } from './timeline.js'
import type { Report } from './types.js'
import { windowView } from './window-view.js'

/** Maximum number of runs with space-time views. */
const MAX_TIMELINES = 3

/** @param folder created if it does not exist; existing files are overwritten */
export async function writeReport(folder: string, report: Report): Promise<void> {
  const { runs } = report
  const groups = groupRuns(runs)
  const timed = runs.flatMap((run, index) => (run.timeline ? [{ ...run, timeline: run.timeline, index }] : []))
  const figures = [
    ...outcomeFigures(groups),
    ...lineFigures(groups.slice(0, MAX_LINES)),
    ...timed
      .slice(0, MAX_TIMELINES)
      .flatMap(({ timeline, label, scenario, index }) => viewsOf(timeline, label, `run-${index}`, scenario.nodes))
  ]
  const drawings = await Promise.all(figures.map(draw))
  const data: Record<string, string> = {
    'runs.csv': toCsv(runRows(runs)),
    'curves.csv': toCsv(curveRows(runs)),
    ...(timed.length > 0 ? { 'space-time.csv': toCsv(spanRows(runs)) } : {}),
    'report.json': `${JSON.stringify({ ...report, runs: runs.map(({ timeline: _, ...run }) => run) }, undefined, 1)}\n`
  }
  const notes = [
    groups.length > MAX_LINES
      ? `Curves are shown for the first ${MAX_LINES} of ${groups.length} runs; the data has all of them.`
      : '',
    timed.length > MAX_TIMELINES
      ? `Space-time views are shown for the first ${MAX_TIMELINES} of ${timed.length} runs that have one; space-time.csv has the detailed views of all.`
      : '',
    timed.length > 0
      ? 'Detailed views show the start, and the first partition or the first stopped node, until the plot is full; the overview shows the whole run.'
      : 'There is no space-time view: only runs of admb and admb-sender have one, and sweeps do not record it.'
  ]
  const page = pageOf({
    report,
    groups,
    drawings,
    notes: notes.filter(Boolean),
    files: Object.keys(data),
    vega: await readFile(new URL('vega.min.js', import.meta.resolve('#vega')), 'utf8')
  })
  await mkdir(join(folder, 'figures'), { recursive: true })
  await Promise.all([
    ...Object.entries(data).map(([name, text]) => writeFile(join(folder, name), text)),
    ...drawings.map(({ name, svg }) => writeFile(join(folder, 'figures', `${name}.svg`), standalone(svg))),
    writeFile(join(folder, 'index.html'), page)
  ])
}

function viewsOf(timeline: Timeline, label: string, name: string, nodes: number): Figure[] {
  const { watched, windows } = timeline
  const sample = watched.length < nodes ? `${watched.length} of ${nodes} nodes are shown, evenly spaced.` : ''
  const run = { label, name, sample }
  return [...windows.map(window => windowView(window, run)), overview(timeline, run)]
}

/** An SVG file for any viewer. */
function standalone(svg: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${inPlainColours(svg)}\n`
}

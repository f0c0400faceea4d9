/** Writes a report's folder: the page, its plots as SVG, the data. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { closeView } from './close-view.js'
import { groupRuns } from './groups.js'
import { lineFigures, MOST_LINES } from './lines.js'
import { outcomeFigures } from './outcomes.js'
import { pageOf } from './page.js'
import { draw, type Figure } from './render.js'
import { curveRows, runRows, spanRows, toCsv } from './tables.js'
import { COLOURS, inLightColours } from './theme.js'
import type { Timeline } from './timeline.js'
import type { Report } from './types.js'
import { wholeView } from './whole-view.js'

/** Runs with space-time views. */
const MOST_TIMELINES = 3

/** @param folder is made if it is not there; files of the same names are written over */
export async function writeReport(folder: string, report: Report): Promise<void> {
  const { runs } = report
  const groups = groupRuns(runs)
  const timed = runs.flatMap((run, index) => (run.timeline ? [{ ...run, timeline: run.timeline, index }] : []))
  const figures = [
    ...outcomeFigures(groups),
    ...lineFigures(groups.slice(0, MOST_LINES)),
    ...timed
      .slice(0, MOST_TIMELINES)
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
    groups.length > MOST_LINES
      ? `Curves are shown for the first ${MOST_LINES} of ${groups.length} runs; the data has them all.`
      : '',
    timed.length > MOST_TIMELINES
      ? `Space-time views are shown for the first ${MOST_TIMELINES} of ${timed.length} runs that have one; space-time.csv has the close views of all.`
      : '',
    timed.length > 0
      ? 'Close views show the start, and the time around the first cut or the first node that went away, each until it fills a plot; the whole run is shown coarsely.'
      : 'There is no space-time view: only runs of admb and admb-sender have one, and sweeps keep none.'
  ]
  const page = pageOf({
    report,
    groups,
    drawings,
    notes: notes.filter(Boolean),
    files: Object.keys(data),
    vega: await readFile(new URL('vega.min.js', import.meta.resolve('vega')), 'utf8')
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
  const sample = watched.length < nodes ? `${watched.length} of ${nodes} nodes are shown, evenly chosen.` : ''
  const of = { label, name, sample }
  return [...windows.map(window => closeView(window, of)), wholeView(timeline, of)]
}

/** An SVG for any reader: plain colours on white ground. */
function standalone(svg: string): string {
  const ground = `<rect width="100%" height="100%" fill="${COLOURS.ground[0]}"/>`
  return `<?xml version="1.0" encoding="UTF-8"?>\n${inLightColours(svg).replace('</desc>', `</desc>${ground}`)}\n`
}

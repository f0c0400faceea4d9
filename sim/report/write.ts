/** Writes a report: the page, the plots as SVG files, and the data. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { figuresOf, MAX_LINES, spaceTime } from './figures.js'
import { pageOf } from './page.js'
import { curveRows, groupRuns, type Report, runRows, toCsv } from './tables.js'
import { standalone } from './theme.js'

/** Maximum number of runs with space-time views. */
const MAX_TIMELINES = 3

/** @param folder created if it does not exist; existing files are overwritten */
export async function writeReport(folder: string, report: Report): Promise<void> {
  const { runs } = report
  const groups = groupRuns(runs)
  const timed = runs.flatMap((run, index) => (run.timeline ? [{ ...run, timeline: run.timeline, index }] : []))
  const figures = [
    ...figuresOf(groups),
    ...timed
      .slice(0, MAX_TIMELINES)
      .map(({ timeline, label, scenario, index }) =>
        spaceTime(timeline, { label, name: `run-${index}`, nodes: scenario.nodes })
      )
  ]
  const data: Record<string, string> = {
    'runs.csv': toCsv(runRows(runs)),
    'curves.csv': toCsv(curveRows(runs)),
    'report.json': `${JSON.stringify({ ...report, runs: runs.map(({ timeline: _, ...run }) => run) }, undefined, 1)}\n`
  }
  const notes = [
    groups.length > MAX_LINES
      ? `Curves are shown for the first ${MAX_LINES} of ${groups.length} runs; the data has all of them.`
      : '',
    timed.length > MAX_TIMELINES
      ? `Space-time views are shown for the first ${MAX_TIMELINES} of ${timed.length} runs that have one.`
      : '',
    timed.length > 0
      ? 'Space-time views begin at the first partition, or at the start if there is none.'
      : 'There is no space-time view: only runs of admb and admb-sender have one, and sweeps do not record it.'
  ]
  const page = pageOf({
    report,
    groups,
    figures,
    notes: notes.filter(Boolean),
    files: Object.keys(data)
  })
  await mkdir(join(folder, 'figures'), { recursive: true })
  await Promise.all([
    ...Object.entries(data).map(([name, text]) => writeFile(join(folder, name), text)),
    ...figures.map(({ name, svg }) => writeFile(join(folder, 'figures', `${name}.svg`), standalone(svg))),
    writeFile(join(folder, 'index.html'), page)
  ])
}

/** Reports of simulated runs: a page with plots, the plots as SVG files, and the data. */

export type { Report, ReportedRun } from './tables.js'
export { type Group, groupRuns, labelOf, type Spread, spreadOf } from './tables.js'
export { TimelineRecorder } from './timeline.js'

/** Loads `writeReport`. It is loaded only when a report is written. */
export async function loadWriter(): Promise<typeof import('./write.js').writeReport> {
  return (await import('./write.js')).writeReport
}

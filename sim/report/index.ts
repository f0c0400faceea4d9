/** Reports of simulated runs: a page with plots, the plots as SVG files, and the data. */
export { type Group, groupRuns, labelOf, type Spread, spreadOf } from './groups.js'
export { TimelineRecorder } from './recorder.js'
export type { Report, ReportedRun } from './types.js'

/** Loads `writeReport`. It depends on Vega, so it is loaded only when a report is written. */
export async function loadWriter(): Promise<typeof import('./write.js').writeReport> {
  return (await import('./write.js')).writeReport
}

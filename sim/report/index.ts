/**
 * Reports of simulated runs: a page with plots, the plots as SVG, the data. `writeReport` brings Vega along, so that it is
 * loaded only when a report is written.
 */
export { type Group, groupRuns, labelOf, type Spread, spreadOf } from './groups.js'
export { TimelineRecorder } from './recorder.js'
export type { Report, ReportedRun } from './types.js'

export async function loadWriter(): Promise<typeof import('./write.js').writeReport> {
  return (await import('./write.js')).writeReport
}

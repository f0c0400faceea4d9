/** Runs cases one after another in this thread, with progress on a terminal, and watches those whose report is wanted. */
import { type Observer, type Scenario, simulate } from '../../../sim/index.js'
import { type ReportedRun, TimelineRecorder } from '../../../sim/report/index.js'
import { readData } from './data.js'
import { InputProgress } from './progress.js'

export interface MeasuredCase {
  readonly label: string
  /** What sets this run apart from the others. */
  readonly varied: ReportedRun['varied']
  readonly scenario: Scenario
}

/** Inputs between two looks at the clock. */
const STRIDE = 1024

/**
 * @param watch whether to keep who held which predictor when, for a report
 * @param onRun called after each run
 */
export async function measure(
  cases: readonly MeasuredCase[],
  { watch, onRun }: { readonly watch: boolean; readonly onRun: (run: ReportedRun) => void }
): Promise<ReportedRun[]> {
  const progress = new InputProgress(cases.reduce((sum, { scenario }) => sum + scenario.inputs, 0))
  let before = 0
  const runs: ReportedRun[] = []
  for (const [index, one] of cases.entries()) {
    const recorder = watch ? new TimelineRecorder(one.scenario) : undefined
    const what = cases.length > 1 ? `${one.label} (${index + 1} of ${cases.length})` : one.label
    const observer: Observer = {
      ...recorder?.observer,
      served(inputs) {
        if (inputs % STRIDE === 0) progress.show(before + inputs, what)
      }
    }
    const data = await readData(one.scenario)
    const result = simulate(one.scenario, { observer, data })
    before += one.scenario.inputs
    progress.clear()
    const run = { ...one, result, timeline: recorder?.finish(result.virtualMs) }
    onRun(run)
    runs.push(run)
  }
  return runs
}

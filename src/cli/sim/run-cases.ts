/** Runs cases one after another in this thread, with progress on a terminal, and optionally records timelines. */
import { type RunObserver, type Scenario, simulate } from '../../../sim/index.js'
import { type ReportedRun, TimelineRecorder } from '../../../sim/report/index.js'
import { formatDuration, ProgressLine } from '../output/output.js'
import { readData } from './data.js'

export interface RunCase {
  readonly label: string
  /** The varied keys of the scenario. */
  readonly varied: ReportedRun['varied']
  readonly scenario: Scenario
}

/** Inputs between two updates of the progress line. */
const STRIDE = 1024

/**
 * @param recordTimelines whether to record the timeline of each run, for a report
 * @param onRun called after each run
 */
export async function runCases(
  cases: readonly RunCase[],
  { recordTimelines, onRun }: { readonly recordTimelines: boolean; readonly onRun: (run: ReportedRun) => void }
): Promise<ReportedRun[]> {
  const progress = new InputProgress(cases.reduce((sum, { scenario }) => sum + scenario.inputs, 0))
  let before = 0
  const runs: ReportedRun[] = []
  for (const [index, runCase] of cases.entries()) {
    const recorder = recordTimelines ? new TimelineRecorder(runCase.scenario) : undefined
    const what = cases.length > 1 ? `${runCase.label} (${index + 1} of ${cases.length})` : runCase.label
    const observer: RunObserver = {
      ...recorder?.observer,
      onInput(inputs) {
        if (inputs % STRIDE === 0) progress.show(before + inputs, what)
      }
    }
    const data = await readData(runCase.scenario)
    const result = simulate(runCase.scenario, { observer, data })
    before += runCase.scenario.inputs
    progress.clear()
    const run = { ...runCase, result, timeline: recorder?.finish(result.virtualMs) }
    onRun(run)
    runs.push(run)
  }
  return runs
}

const BAR_WIDTH = 24

/** A progress line on a terminal: share of the inputs, and the remaining time. Prints nothing elsewhere. */
export class InputProgress {
  readonly #line = new ProgressLine()
  readonly #start = performance.now()
  readonly #total: number

  /** @param total inputs of all runs */
  constructor(total: number) {
    this.#total = total
  }

  /** @param done inputs served so far by all runs @param what the current runs */
  show(done: number, what: string): void {
    this.#line.show(() => {
      const share = Math.min(1, done / this.#total)
      const seconds = (performance.now() - this.#start) / 1000
      const left = share > 0 ? `, ${formatDuration((seconds / share) * (1 - share))} left` : ''
      const full = Math.floor(share * BAR_WIDTH)
      return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)} ${Math.floor(100 * share)} %, ${what}${left}`
    })
  }

  clear(): void {
    this.#line.clear()
  }
}

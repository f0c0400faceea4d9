/** A worker thread of a sweep. It reports the number of inputs that a run has served. */
import { type RunResult, type Scenario, simulate } from '../../../sim/index.js'
import { runTasks } from '../task-threads.js'
import { readData } from './scenarios.js'

export interface SweepTask {
  readonly scenario: Scenario
  /** Index of the run. */
  readonly index: number
}

/** Number of progress messages per run. */
const PROGRESS_MESSAGES = 50

runTasks<SweepTask, RunResult, number>(async ({ scenario }, post) => {
  const stride = Math.ceil(scenario.inputs / PROGRESS_MESSAGES)
  const onInput = (inputs: number) => {
    if (inputs % stride === 0) post(inputs)
  }
  return simulate(scenario, { observer: { onInput }, data: await readData(scenario) })
})

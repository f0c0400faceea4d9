/** A worker thread of the fuzzer. */
import { type FuzzReport, fuzzPortion } from '../../../sim/index.js'
import { runTasks } from '../task-threads.js'

export interface FuzzTask {
  readonly portion: number
  readonly runs: number
  readonly seed: number
}

export interface FuzzProgress {
  /** Number of runs since the previous message. */
  readonly runs: number
  readonly isShrinking: boolean
}

/** Runs between two progress messages. */
const PROGRESS_INTERVAL = 10

runTasks<FuzzTask, FuzzReport, FuzzProgress>(({ portion, runs, seed }, post) => {
  let unreported = 0
  const postProgress = (isShrinking: boolean) => {
    post({ runs: unreported, isShrinking })
    unreported = 0
  }
  const report = fuzzPortion(portion, runs, seed, {
    onRun: hasFailed => {
      if (++unreported === PROGRESS_INTERVAL || hasFailed) postProgress(hasFailed)
    }
  })
  postProgress(false)
  return report
})

/** A worker thread of the fuzzer: runs one portion at a time and posts its report. */
import { parentPort } from 'node:worker_threads'
import { type FuzzReport, fuzzPortion } from '../../../sim/index.js'

export interface FuzzTask {
  readonly portion: number
  readonly runs: number
  readonly seed: number
}

export type FuzzWorkerMessage =
  /** Number of runs since the previous progress message. */
  | { readonly kind: 'progress'; readonly runs: number; readonly isShrinking: boolean }
  | { readonly kind: 'report'; readonly portion: number; readonly report: FuzzReport }

/** Runs between two progress messages. */
const PROGRESS_INTERVAL = 10

parentPort?.on('message', ({ portion, runs, seed }: FuzzTask) => {
  const post = (message: FuzzWorkerMessage) => parentPort?.postMessage(message)
  let unreported = 0
  const postProgress = (isShrinking: boolean) => {
    post({ kind: 'progress', runs: unreported, isShrinking })
    unreported = 0
  }
  const report = fuzzPortion(portion, runs, seed, {
    onRun: hasFailed => {
      if (++unreported === PROGRESS_INTERVAL || hasFailed) postProgress(hasFailed)
    }
  })
  postProgress(false)
  post({ kind: 'report', portion, report })
})

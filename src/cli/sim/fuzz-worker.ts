/** A thread of a fuzzing: takes portions, one at a time, and answers with what was found. */
import { parentPort } from 'node:worker_threads'
import { type FuzzReport, fuzzPortion } from '../../../sim/index.js'

export interface FuzzTask {
  readonly portion: number
  readonly runs: number
  readonly seed: number
}

export type FuzzWorkerMessage =
  /** Runs since the last such message. */
  | { readonly kind: 'progress'; readonly runs: number; readonly isShrinking: boolean }
  | { readonly kind: 'report'; readonly portion: number; readonly report: FuzzReport }

/** Runs between two messages. */
const PROGRESS_INTERVAL = 10

parentPort?.on('message', ({ portion, runs, seed }: FuzzTask) => {
  const tell = (message: FuzzWorkerMessage) => parentPort?.postMessage(message)
  let untold = 0
  const tellProgress = (isShrinking: boolean) => {
    tell({ kind: 'progress', runs: untold, isShrinking })
    untold = 0
  }
  const report = fuzzPortion(portion, runs, seed, {
    onRun: hasFailed => {
      if (++untold === PROGRESS_INTERVAL || hasFailed) tellProgress(hasFailed)
    }
  })
  tellProgress(false)
  tell({ kind: 'report', portion, report })
})

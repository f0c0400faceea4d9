/** A worker thread of `admb tune`: learns a prefix of the rows with a candidate, for its progressive figures. */
import { workerData } from 'node:worker_threads'
import {
  DivergenceError,
  ExampleError,
  type Figures,
  rowsOf,
  type SerialOptions,
  SerialTrainer
} from '../../learning/index.js'
import { runTasks } from '../task-threads.js'
import type { Candidate } from './candidates.js'
import type { SharedRows } from './halving.js'

export interface TuneWorkerData {
  readonly rows: SharedRows
  /** Options of the model that are not tuned. */
  readonly options: SerialOptions
}

export interface TuneTask {
  readonly candidate: Candidate
  /** Index of the result. */
  readonly index: number
  /** Length of the prefix. */
  readonly rows: number
}

/** Progressive figures of a candidate. */
export interface TuneResult {
  /** Infinity if the candidate diverged. */
  readonly loss: number
  readonly figures?: Figures
  /** Why it diverged. */
  readonly failure?: string
}

/** Rows between two checks for divergence. */
const SLICE = 1000

runTasks(({ candidate, rows: count }: TuneTask) => {
  const { rows, options } = workerData as TuneWorkerData
  return tryCandidate({ ...options, ...candidate, dimension: rows.dimension }, rows, count)
})

function tryCandidate(options: SerialOptions, rows: SharedRows, count: number): TuneResult {
  const trainer = new SerialTrainer(options)
  try {
    for (let from = 0; from < count; from += SLICE) {
      trainer.learn(rowsOf(rows, from, Math.min(from + SLICE, count)))
    }
  } catch (error) {
    if (!(error instanceof DivergenceError || error instanceof ExampleError)) throw error
    return { loss: Number.POSITIVE_INFINITY, failure: error.message }
  }
  const { averageLoss = 0 } = trainer.report()
  return { loss: averageLoss, figures: trainer.metrics()?.total }
}

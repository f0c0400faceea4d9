/** Shares the portions of a fuzzing out among worker threads. What is found does not depend on their number. */
import { Worker } from 'node:worker_threads'
import { type FuzzReport, RUNS_PER_PORTION } from '../../../sim/index.js'
import type { FuzzWorkerMessage, FuzzTask } from './fuzz-worker.js'

/**
 * @param onProgress told of the runs so far, and whether a violation is being shrunk
 * @returns the violation of the first portion that has one
 */
export async function fuzzInThreads(
  runs: number,
  seed: number,
  threads: number,
  onProgress: (runs: number, isShrinking: boolean) => void
): Promise<FuzzReport> {
  const portions = Math.ceil(runs / RUNS_PER_PORTION)
  let next = 0
  let done = 0
  let isShrinking = false
  /** The first portion in which something was found: later ones do not matter any more. */
  let end = portions
  let first: FuzzReport | undefined
  const workers: Worker[] = []
  const serve = (worker: Worker) =>
    new Promise<void>((resolve, reject) => {
      const give = () => {
        const portion = next++
        if (portion >= end) resolve()
        else worker.postMessage({ portion, runs: Math.min(RUNS_PER_PORTION, runs - portion * RUNS_PER_PORTION), seed } satisfies FuzzTask)
      }
      worker.on('message', (message: FuzzWorkerMessage) => {
        if (message.kind === 'progress') {
          done += message.runs
          isShrinking ||= message.isShrinking
          onProgress(done, isShrinking)
          return
        }
        const { portion, report } = message
        if (report.violations.length > 0 && portion < end) {
          end = portion
          first = { ...report, runs: portion * RUNS_PER_PORTION + report.runs }
        }
        give()
      })
      worker.once('error', reject)
      give()
    })
  try {
    await Promise.all(
      Array.from({ length: Math.min(threads, portions) }, () => {
        const worker = new Worker(new URL('fuzz-worker.js', import.meta.url))
        workers.push(worker)
        return serve(worker)
      })
    )
  } finally {
    await Promise.all(workers.map(worker => worker.terminate()))
  }
  return first ?? { runs, violations: [] }
}

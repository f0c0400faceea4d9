/** Runs the portions of the fuzzer in worker threads. The result does not depend on the number of threads. */
import { Worker } from 'node:worker_threads'
import { type FuzzReport, RUNS_PER_PORTION } from '../../../sim/index.js'
import type { FuzzTask, FuzzWorkerMessage } from './fuzz-worker.js'

/**
 * @param onProgress called with the number of runs so far, and whether a violation is being shrunk
 * @returns the violation of the first portion that has one, or the number of runs
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
  /** The first portion with a violation; later portions are skipped. */
  let end = portions
  let first: FuzzReport | undefined
  const workers: Worker[] = []
  const manage = (worker: Worker) =>
    new Promise<void>((resolve, reject) => {
      const assignNext = () => {
        const portion = next++
        if (portion >= end) resolve()
        else
          worker.postMessage({
            portion,
            runs: Math.min(RUNS_PER_PORTION, runs - portion * RUNS_PER_PORTION),
            seed
          } satisfies FuzzTask)
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
        assignNext()
      })
      worker.once('error', reject)
      assignNext()
    })
  try {
    await Promise.all(
      Array.from({ length: Math.min(threads, portions) }, () => {
        const worker = new Worker(new URL('fuzz-worker.js', import.meta.url))
        workers.push(worker)
        return manage(worker)
      })
    )
  } finally {
    await Promise.all(workers.map(worker => worker.terminate()))
  }
  return first ?? { runs, violations: [] }
}

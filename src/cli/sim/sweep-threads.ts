/** Runs the simulations of a sweep in worker threads. */
import { Worker } from 'node:worker_threads'
import type { RunResult, Scenario } from '../../../sim/index.js'
import type { SweepWorkerMessage } from './sweep-worker.js'

export interface PoolOptions {
  readonly threads: number
  /** Called when a run has finished. @param index index of its scenario */
  onResult(index: number, result: RunResult): void
  /** @param inputs number of inputs served so far by all runs */
  onProgress(inputs: number): void
  /** Stops all threads when aborted; unfinished runs are lost. */
  readonly signal: AbortSignal
}

/**
 * Resolves when all runs have finished, or as soon as the signal is aborted.
 * @throws the error of a run or of a thread
 */
export async function runInThreads(
  scenarios: readonly Scenario[],
  { threads, onResult, onProgress, signal }: PoolOptions
): Promise<void> {
  const served = scenarios.map(() => 0)
  let next = 0
  const workers: Worker[] = []
  const manage = (worker: Worker) =>
    new Promise<void>((resolve, reject) => {
      let current = -1
      const assignNext = () => {
        if (next === scenarios.length || signal.aborted) {
          resolve()
          return
        }
        current = next++
        worker.postMessage(scenarios[current])
      }
      const progress = (inputs: number) => {
        served[current] = inputs
        onProgress(served.reduce((sum, each) => sum + each, 0))
      }
      worker.on('message', (message: SweepWorkerMessage) => {
        if (signal.aborted) return
        if (message.kind === 'served') {
          progress(message.inputs)
          return
        }
        progress(scenarios[current].inputs)
        onResult(current, message.result)
        assignNext()
      })
      worker.once('error', reject)
      signal.addEventListener('abort', () => resolve(), { once: true })
      assignNext()
    })
  try {
    await Promise.all(
      Array.from({ length: Math.min(threads, scenarios.length) }, () => {
        const worker = new Worker(new URL('sweep-worker.js', import.meta.url))
        workers.push(worker)
        return manage(worker)
      })
    )
  } finally {
    await Promise.all(workers.map(worker => worker.terminate()))
  }
}

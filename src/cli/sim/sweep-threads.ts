/** Runs simulations in worker threads, as many at a time as there are threads. */
import { Worker } from 'node:worker_threads'
import type { RunResult, Scenario } from '../../../sim/index.js'
import type { SweepWorkerMessage } from './sweep-worker.js'

export interface PoolOptions {
  readonly threads: number
  /** A run is over. @param index of its scenario */
  onResult(index: number, result: RunResult): void
  /** @param inputs that all runs have served so far */
  onProgress(inputs: number): void
  /** Stops all at once when aborted: what is not over is lost. */
  readonly signal: AbortSignal
}

/**
 * @returns when all are over, or as soon as the signal is aborted
 * @throws what a run threw, or how a thread died
 */
export async function runInThreads(
  scenarios: readonly Scenario[],
  { threads, onResult, onProgress, signal }: PoolOptions
): Promise<void> {
  const served = scenarios.map(() => 0)
  let next = 0
  const workers: Worker[] = []
  const serve = (worker: Worker) =>
    new Promise<void>((resolve, reject) => {
      let current = -1
      const give = () => {
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
        give()
      })
      worker.once('error', reject)
      signal.addEventListener('abort', () => resolve(), { once: true })
      give()
    })
  try {
    await Promise.all(
      Array.from({ length: Math.min(threads, scenarios.length) }, () => {
        const worker = new Worker(new URL('worker.js', import.meta.url))
        workers.push(worker)
        return serve(worker)
      })
    )
  } finally {
    await Promise.all(workers.map(worker => worker.terminate()))
  }
}

/** Runs candidates in worker threads. The results do not depend on the number of threads. */
import { Worker } from 'node:worker_threads'
import type { TuneResult, TuneTask, TuneWorkerData } from './worker.js'

export class TuneThreads {
  readonly #workers: readonly Worker[]

  constructor(data: TuneWorkerData, threads: number) {
    this.#workers = Array.from(
      { length: threads },
      () => new Worker(new URL('worker.js', import.meta.url), { workerData: data })
    )
  }

  /**
   * @param onResult called after each result with the number of results
   * @returns the results in the order of the tasks
   * @throws the error of a thread
   */
  async run(tasks: readonly TuneTask[], onResult: (done: number) => void): Promise<readonly TuneResult[]> {
    const results: TuneResult[] = []
    let next = 0
    let done = 0
    const manage = (worker: Worker) =>
      new Promise<void>((resolve, reject) => {
        let current = -1
        const stop = () => worker.off('message', take).off('error', reject)
        const assignNext = () => {
          if (next < tasks.length) {
            current = next++
            worker.postMessage(tasks[current])
            return
          }
          stop()
          resolve()
        }
        const take = (result: TuneResult) => {
          results[current] = result
          onResult(++done)
          assignNext()
        }
        worker.on('message', take).on('error', reject)
        assignNext()
      })
    await Promise.all(this.#workers.map(manage))
    return results
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map(worker => worker.terminate()))
  }
}

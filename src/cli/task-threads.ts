/** Threads that run tasks, one at a time each. Results do not depend on the number of threads. */
import { parentPort, type Worker } from 'node:worker_threads'

type Message<Result, Progress> = { readonly progress: Progress } | { readonly result: Result }

interface Running<Task, Progress> {
  /** Called with what a task reports while it runs. */
  readonly onProgress?: (progress: Progress, task: Task) => void
  /** Ends the run when it is aborted; unfinished tasks are lost. */
  readonly signal?: AbortSignal
}

export class TaskThreads<Task, Result, Progress = never> {
  readonly #workers: readonly Worker[]

  /** @param start starts a thread that calls `runTasks` */
  constructor(threads: number, start: () => Worker) {
    this.#workers = Array.from({ length: threads }, start)
  }

  /**
   * Resolves when all tasks have finished, or as soon as the signal is aborted.
   * @param tasks each is taken when a thread is free
   * @param onResult called when a task has finished
   * @throws the error of a task or of a thread
   */
  async run(
    tasks: Iterable<Task>,
    onResult: (result: Result, task: Task) => void,
    { onProgress, signal }: Running<Task, Progress> = {}
  ): Promise<void> {
    const left = tasks[Symbol.iterator]()
    const manage = (worker: Worker) =>
      new Promise<void>((resolve, reject) => {
        let task: Task
        const end = () => {
          worker.off('message', receive).off('error', reject)
          resolve()
        }
        const assignNext = () => {
          const { done, value } = left.next()
          if (done || signal?.aborted) {
            end()
            return
          }
          task = value
          worker.postMessage(task)
        }
        const receive = (message: Message<Result, Progress>) => {
          if ('progress' in message) {
            onProgress?.(message.progress, task)
            return
          }
          onResult(message.result, task)
          assignNext()
        }
        worker.on('message', receive).on('error', reject)
        signal?.addEventListener('abort', end, { once: true })
        assignNext()
      })
    await Promise.all(this.#workers.map(manage))
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map(worker => worker.terminate()))
  }
}

/** Runs the tasks that this thread receives. */
export function runTasks<Task, Result, Progress = never>(
  run: (task: Task, post: (progress: Progress) => void) => Result | Promise<Result>
): void {
  parentPort?.on('message', async (task: Task) => {
    const result = await run(task, progress => parentPort?.postMessage({ progress }))
    parentPort?.postMessage({ result })
  })
}

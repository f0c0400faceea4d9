/** Threads that code starts, so that a test can end them. */
import type { Worker } from 'node:worker_threads'

/** @returns the result of `open`, and the threads that have started meanwhile, in their order */
export async function startedThreads<Opened>(
  open: () => Promise<Opened>
): Promise<readonly [opened: Opened, threads: readonly Worker[]]> {
  const threads: Worker[] = []
  const add = (thread: Worker) => threads.push(thread)
  process.on('worker', add)
  try {
    return [await open(), threads]
  } finally {
    process.off('worker', add)
  }
}

/** The CPU time of each thread of this process, in seconds, by its number; that of the main thread is the number of the process. */
import { readdirSync, readFileSync } from 'node:fs'

const TASKS = '/proc/self/task'

export function threadTimes(): ReadonlyMap<number, number> {
  if (process.platform !== 'linux') return new Map([[process.pid, performance.now() / 1000]])
  return new Map(readdirSync(TASKS).map(id => [Number(id), timeOf(id)]))
}

function timeOf(id: string): number {
  try {
    return Number(readFileSync(`${TASKS}/${id}/schedstat`, 'utf8').split(' ')[0]) / 1e9
  } catch {
    // The thread has ended.
    return 0
  }
}

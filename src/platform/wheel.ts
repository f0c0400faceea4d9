/**
 * One timer for all periodic work of a process. Work of different parts is done in common wake-ups, since a wake-up costs an idle
 * process more than the work.
 */

/** Time between two wake-ups in ms. */
export const WHEEL_MS = 500

interface Task {
  readonly steps: number
  readonly run: () => void
}

const tasks = new Set<Task>()
let timer: ReturnType<typeof setInterval> | undefined
let steps = 0
let nextAt = 0

function turn(): void {
  steps++
  nextAt = performance.now() + WHEEL_MS
  for (const task of [...tasks]) if (steps % task.steps === 0 && tasks.has(task)) task.run()
}

/**
 * Calls `run` about every `ms`, rounded to wake-ups of the process; a shorter interval has a timer of its own.
 * @returns a function that ends the calls
 */
export function periodically(ms: number, run: () => void): () => void {
  if (ms < WHEEL_MS) {
    const own = setInterval(run, ms)
    return () => clearInterval(own)
  }
  const task = { steps: Math.round(ms / WHEEL_MS), run }
  tasks.add(task)
  if (timer === undefined) {
    nextAt = performance.now() + WHEEL_MS
    timer = setInterval(turn, WHEEL_MS)
  }
  return () => {
    tasks.delete(task)
    if (tasks.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** Time in ms until the first wake-up of `periodically` that is at least `ms` away. */
export function untilTurn(ms: number): number {
  const next = nextAt - performance.now()
  return next >= ms ? next : next + WHEEL_MS * Math.ceil((ms - next) / WHEEL_MS)
}

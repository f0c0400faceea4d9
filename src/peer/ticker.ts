/**
 * Ticks of the learner thread: one in each period. While nothing happens, the ticks of several periods come together, so that an idle
 * peer wakes up less often, and waits that are counted in ticks are as long as otherwise.
 */

/** Ticks without an event after which a thread is idle. */
const IDLE_AFTER = 8
/** Time between two wake-ups of an idle thread, unless the period is longer. */
const IDLE_MS = 500

type Timer = ReturnType<typeof setTimeout>

export interface Timers {
  setTimeout(callback: () => void, ms: number): Timer
  clearTimeout(timer: Timer): void
}

export class Ticker {
  readonly #period: number
  readonly #tick: (count: number) => void
  readonly #timers: Timers
  #timer: Timer
  /** Since the last event. */
  #ticks = 0
  #isStopped = false

  /**
   * @param period in milliseconds
   * @param tick called with the number of ticks that are due
   */
  constructor(period: number, tick: (count: number) => void, timers: Timers = globalThis) {
    this.#period = period
    this.#tick = tick
    this.#timers = timers
    this.#timer = this.#schedule()
  }

  /** Something has happened: the next tick is due within a period. */
  wake(): void {
    const wasIdle = this.#ticks >= IDLE_AFTER
    this.#ticks = 0
    if (!wasIdle || this.#isStopped) return
    this.#timers.clearTimeout(this.#timer)
    this.#timer = this.#schedule()
  }

  /** Ends the ticks, whatever happens afterwards. */
  stop(): void {
    this.#isStopped = true
    this.#timers.clearTimeout(this.#timer)
  }

  #schedule(): Timer {
    const count = this.#ticks >= IDLE_AFTER ? Math.max(1, Math.floor(IDLE_MS / this.#period)) : 1
    return this.#timers.setTimeout(() => {
      this.#ticks += count
      this.#timer = this.#schedule()
      this.#tick(count)
    }, count * this.#period)
  }
}

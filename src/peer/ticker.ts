/** Ticks of the learner thread: one in each period, and fewer while nothing happens, so that an idle peer uses less CPU time. */

/** Ticks without an event after which a thread is idle. Waits that are counted in ticks are shorter, unless a frame is on its way. */
const IDLE_AFTER = 256
/** Interval of the ticks of an idle thread, unless the period is longer. */
const IDLE_MS = 500

type Timer = ReturnType<typeof setTimeout>

export interface Timers {
  setTimeout(callback: () => void, ms: number): Timer
  clearTimeout(timer: Timer): void
}

export class Ticker {
  readonly #period: number
  readonly #tick: () => void
  readonly #timers: Timers
  #timer: Timer
  /** Since the last event. */
  #ticks = 0
  #isStopped = false

  /** @param period in milliseconds */
  constructor(period: number, tick: () => void, timers: Timers = globalThis) {
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
    const ms = this.#ticks >= IDLE_AFTER ? Math.max(this.#period, IDLE_MS) : this.#period
    return this.#timers.setTimeout(() => {
      this.#ticks++
      this.#timer = this.#schedule()
      this.#tick()
    }, ms)
  }
}

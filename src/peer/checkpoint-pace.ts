/**
 * When to write the next checkpoint. A small state is written twice a second, also on a disk that is slow to sync. Encoding takes
 * at most a tenth of the learner's time. A state of 1 MB or more is written every 2 s at most, in a tenth of the disk's time.
 */

const SMALL_MS = 500
const LARGE_MS = 2000
/** Bytes per millisecond that are written at most, while the interval is between these bounds. */
const RATE = 500
/** Share of the time, inverted. */
const SHARE = 10

export class CheckpointPace {
  #startedAt = 0
  #isStoring = false
  #dueAt = 0
  /** Size of the last state relative to a large one, at most 1. */
  #size = 0

  isDue(now: number): boolean {
    return !this.#isStoring && now >= this.#dueAt
  }

  /** Encoding starts. */
  start(now: number): void {
    this.#startedAt = now
    this.#isStoring = true
  }

  /** The state is encoded, and is written from now on. */
  encoded(now: number, bytes: number): void {
    const interval = Math.min(LARGE_MS, Math.max(SMALL_MS, bytes / RATE))
    this.#size = Math.min(1, bytes / (RATE * LARGE_MS))
    this.#dueAt = now + Math.max(interval, SHARE * (now - this.#startedAt))
    this.#startedAt = now
  }

  /** The checkpoint is on the disk. */
  stored(now: number): void {
    this.#isStoring = false
    this.#dueAt = Math.max(this.#dueAt, this.#startedAt + this.#size * SHARE * (now - this.#startedAt))
  }
}

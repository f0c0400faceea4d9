/** How long a stream waits at most before it looks whether its pace has changed, in milliseconds. */
const MAX_WAIT_MS = 50
/** The same while it waits for an update. */
const SHORT_MS = 2
/**
 * With a limit of inputs for each update, some more are allowed after several times the mean time between updates, within bounds in
 * milliseconds: gradients of a batch can be lost, with a peer that crashes.
 */
const STALL = { times: 6, min: 300, max: 2000, share: 0.25 }
/** Weight of the last time between updates in their mean. */
const WEIGHT = 0.2

/**
 * Limits the rate of inputs by a token bucket, which holds at most the inputs of one second. A pace that follows the machine has also
 * a limit of inputs for each update: then gradients of old predictors are few, however slow the peers and their connections are.
 */
export class Pace {
  #rate: number
  #perUpdate = Number.POSITIVE_INFINITY
  #credit = 0
  #last: number
  /** Inputs until the next update, as far as they are limited. */
  #room = Number.POSITIVE_INFINITY
  #updates = -1
  #updatedAt: number
  /** When the inputs until the next update were last allowed. */
  #grantedAt: number
  /** Whether further inputs were allowed since the last update. */
  #isStalled = false
  /** Mean time between updates in milliseconds. */
  #interval = 250

  /**
   * @param rate inputs per second; Infinity for no limit
   * @param now milliseconds of a monotonic clock
   */
  constructor(rate: number, now: number) {
    this.#rate = rate
    this.#last = now
    this.#updatedAt = now
    this.#grantedAt = now
  }

  /** @param perUpdate maximum number of inputs between two updates of the predictor; Infinity for no limit */
  change(rate: number, perUpdate: number, now: number): void {
    if (perUpdate !== this.#perUpdate) {
      this.#room = perUpdate
      this.#grantedAt = now
    }
    this.#rate = rate
    this.#perUpdate = perUpdate
  }

  /** The predictor has changed. @param updates number of its updates */
  updated(updates: number, now: number): void {
    // Another predictor with as many updates is no progress.
    if (updates <= this.#updates) return
    // Waiting for lost gradients says nothing about the next update.
    if (this.#updates >= 0 && !this.#isStalled) {
      const mean = (now - this.#updatedAt) / (updates - this.#updates)
      this.#interval += WEIGHT * (mean - this.#interval)
    }
    this.#updates = updates
    this.#updatedAt = now
    this.#grantedAt = now
    this.#isStalled = false
    this.#room = this.#perUpdate
  }

  /** Number of inputs that may be taken now. */
  due(now: number): number {
    if (
      this.#room <= 0 &&
      now - this.#grantedAt > Math.min(STALL.max, Math.max(STALL.min, STALL.times * this.#interval))
    ) {
      this.#grantedAt = now
      this.#isStalled = true
      this.#room = Math.ceil(STALL.share * this.#perUpdate)
    }
    if (this.#rate === Number.POSITIVE_INFINITY) return this.#room
    this.#credit = Math.min(this.#rate + 1, this.#credit + ((now - this.#last) * this.#rate) / 1000)
    this.#last = now
    return Math.min(this.#room, Math.floor(this.#credit))
  }

  take(count: number): void {
    this.#room -= count
    if (this.#rate !== Number.POSITIVE_INFINITY) this.#credit -= count
  }

  /** Milliseconds after which the next input may be due. */
  get wait(): number {
    if (this.#room <= 0) return this.#perUpdate > 0 ? SHORT_MS : MAX_WAIT_MS
    return Math.min(MAX_WAIT_MS, Math.max(1, ((1 - this.#credit) * 1000) / this.#rate))
  }
}

/**
 * The clock of the overlay: milliseconds since the Unix epoch that never go back. It runs with the monotonic clock, which is not
 * adjusted, but stands still while a computer sleeps (CLOCK_MONOTONIC of Linux). It therefore follows jumps of the wall clock
 * forwards. The time for which this process did not run is known as well: silence of others during it does not count.
 */

/** Difference above which the wall clock has jumped, in ms. Smaller ones are drift. */
const JUMP_MS = 2000
/** Delay of a timer above which the process was stalled, in ms. */
const STALL_MS = 250
/** Time in which a lateness decays to a third, in ms. */
const LATENESS_DECAY_MS = 10_000

export class OverlayClock {
  readonly #wall: () => number
  readonly #monotonic: () => number
  #offset: number
  #expected = Number.POSITIVE_INFINITY
  #lateness = 0
  #lateAt = 0

  /**
   * @param wall ms since the Unix epoch
   * @param monotonic monotonic clock in ms
   */
  constructor(wall: () => number = Date.now, monotonic: () => number = () => performance.now()) {
    this.#wall = wall
    this.#monotonic = monotonic
    this.#offset = wall() - monotonic()
  }

  get now(): number {
    const jump = this.#wall() - this.#monotonic() - this.#offset
    if (jump > JUMP_MS) this.#offset += jump
    return this.#offset + this.#monotonic()
  }

  /** This process will run at `time` at the latest, unless it is stalled. */
  expect(time: number): void {
    this.#expected = time
  }

  /** A timer due at `time` runs now. */
  ran(time: number): void {
    const { now } = this
    this.#lateness = Math.max(this.lateness, now - time)
    this.#lateAt = now
  }

  /** How late timers have run in the last seconds, in ms: the maximum, which decays. */
  get lateness(): number {
    return this.#lateness * Math.exp((this.#lateAt - this.now) / LATENESS_DECAY_MS)
  }

  /** How long the process has been stalled since the last call, in ms; 0 if it has not. */
  takeStall(): number {
    const { now } = this
    const late = now - this.#expected
    if (!(late > STALL_MS)) return 0
    this.#expected = now
    return late
  }
}

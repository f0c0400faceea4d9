/**
 * Notices that the learner thread is silent: it hangs, or computes for very long. The main thread still answers heartbeats, so
 * the neighbours would otherwise wait for it. Only seconds in which this thread itself runs are counted.
 */
import { periodically } from '#platform'

/** Seconds of silence above which the learner counts as hung. A status is due four times a second. */
const SILENT_S = 15
/** Seconds of silence for each parameter besides: an update takes up to 0.2 µs, and 20 times as long on a machine with many processes. */
const SILENT_S_PER_PARAMETER = 4e-6
/** After a silence that ended, the limit is this multiple of it: the learner's steps are long. */
const PATIENCE = 3

export interface LearnerWatchHandlers {
  /** The learner has been silent for too long. */
  silent(seconds: number): void
  /** The learner, which was silent, has sent a status. */
  back(): void
}

export class LearnerWatch {
  readonly #handlers: LearnerWatchHandlers
  readonly #stop: () => void
  #seconds = 0
  #limit: number
  #isSilent = false

  /** @param parameters number of parameters of the model */
  constructor(handlers: LearnerWatchHandlers, parameters = 0) {
    this.#handlers = handlers
    this.#limit = Math.round(SILENT_S + SILENT_S_PER_PARAMETER * parameters)
    this.#stop = periodically(1000, () => this.second())
  }

  /** Why the learner counts as hung; undefined if it does not. */
  get reason(): string | undefined {
    return this.#isSilent ? `the learner has not responded for ${this.#seconds} s` : undefined
  }

  /** Called every second. */
  second(): void {
    this.#seconds++
    if (this.#isSilent || this.#seconds < this.#limit) return
    this.#isSilent = true
    this.#handlers.silent(this.#seconds)
  }

  /** The learner has sent a status. */
  reported(): void {
    const seconds = this.#seconds
    this.#seconds = 0
    if (!this.#isSilent) return
    this.#isSilent = false
    this.#limit = Math.max(this.#limit, PATIENCE * seconds)
    this.#handlers.back()
  }

  stop(): void {
    this.#stop()
  }
}

/**
 * The budget of differential privacy of a peer's inputs, across its runs. An input of a stream is released once in each pass over the
 * data, and an input of a request once, so the input that is released most often determines what is spent. The state is written with
 * the records of the first segment of a pass, before the segment can leave.
 */
import { Privacy, type PrivacyOptions } from '../learning/index.js'
import type { PrivacyStatus } from './status.js'

/** The budget in the state directory, as JSON. */
export interface StoredBudget {
  readonly options: Required<PrivacyOptions>
  /** Passes over data that have begun in all runs, of any stream. */
  readonly passes: number
  /** The last of them. */
  readonly last?: Pass
  /** Whether inputs of requests were learned. */
  readonly requests: boolean
}

/** With what a run starts. */
export interface InitialBudget {
  readonly options: PrivacyOptions
  /** Undefined in a new state directory. */
  readonly stored?: StoredBudget
}

/** A pass over a stream. */
export interface Pass {
  readonly stream: string
  /** From 0. */
  readonly number: number
}

export class PrivacyBudget {
  readonly privacy: Privacy
  #passes: number
  #last: Pass | undefined
  #requests: boolean
  #isChanged: boolean
  #isExhausted = false

  /**
   * @param stored of earlier runs @default nothing is spent
   * @throws OptionError
   */
  constructor(options: PrivacyOptions, stored?: StoredBudget) {
    this.privacy = new Privacy(options)
    this.#passes = stored?.passes ?? 0
    this.#last = stored?.last
    this.#requests = stored?.requests ?? false
    this.#isChanged = stored === undefined
  }

  /** Whether a pass would have exceeded the budget: nothing more may be learned. */
  get isExhausted(): boolean {
    return this.#isExhausted
  }

  /**
   * Rows of a pass will be learned.
   * @param isContinued whether they follow the rows of a pass that an earlier run has stored
   * @returns whether it is a new pass, which the budget allows or not (`isExhausted`)
   */
  beginPass(pass: Pass, isContinued: boolean): boolean {
    const isLast = this.#last?.stream === pass.stream && this.#last.number === pass.number
    if (isContinued && isLast) return false
    if (!this.privacy.allows((this.#passes + 1) * this.privacy.rho)) {
      this.#isExhausted = true
      return true
    }
    this.#passes++
    this.#last = pass
    this.#isChanged = true
    return true
  }

  /** Inputs of a request are learned. */
  addRequest(): void {
    if (this.#requests) return
    this.#requests = true
    this.#isChanged = true
  }

  /** What must be durable before a segment leaves; undefined if it is stored already. */
  take(): string | undefined {
    if (!this.#isChanged) return undefined
    this.#isChanged = false
    const [passes, last, requests] = [this.#passes, this.#last, this.#requests]
    return JSON.stringify({ options: this.privacy.options, passes, last, requests } satisfies StoredBudget)
  }

  get status(): PrivacyStatus {
    const { options, rho } = this.privacy
    const released = Math.max(this.#passes, this.#requests ? 1 : 0)
    // The search for the noise rounds.
    const spent = Math.min(options.epsilon, this.privacy.epsilonOf(released * rho))
    return { ...options, released, spent, exhausted: this.#isExhausted }
  }
}

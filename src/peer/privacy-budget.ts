/**
 * The budget of differential privacy of a peer's inputs, across its runs. An input of a stream is released once in each pass over the
 * data, and an input of a request once, so the input that is released most often determines what is spent. The state is written with
 * the records of the first segment of a pass, before the segment can leave.
 */
import { OptionError, Privacy, type PrivacyOptions } from '../learning/index.js'
import type { StartedRun, Store } from '../storage/index.js'
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

/** The budget with which a run starts. @throws OptionError if the state directory belongs to other options */
export async function initialBudget(
  { dp, dir }: { readonly dp?: PrivacyOptions; readonly dir?: string },
  store: Store | undefined,
  run: StartedRun | undefined
): Promise<InitialBudget | undefined> {
  const text = await store?.privacy()
  const stored = text === undefined ? undefined : (JSON.parse(text) as StoredBudget)
  if (dp === undefined) {
    if (stored === undefined) return undefined
    throw new OptionError(`${dir} protects its inputs: give --dp ${textOf(stored.options)}, or another --dir`)
  }
  const hasLearned = run?.checkpoint !== undefined || (run?.journal.records.length ?? 0) > 0
  if (stored === undefined && hasLearned) {
    throw new OptionError(`${dir} has learned inputs without --dp: give a new --dir, or remove --dp`)
  }
  const { options } = new Privacy(dp)
  if (stored === undefined || textOf(stored.options) === textOf(options)) return { options, stored }
  throw new OptionError(`${dir} has a budget of ${textOf(stored.options)}: give --dp with these values, or a new --dir`)
}

function textOf({ epsilon, delta, clip, releases }: Required<PrivacyOptions>): string {
  return `epsilon=${epsilon},delta=${delta},clip=${clip}${releases === 1 ? '' : `,releases=${releases}`}`
}

/** Fills an array of at most 16,384 numbers with random bits. */
export type RandomBits = (words: Uint32Array<ArrayBuffer>) => void

const WORDS = 4096
const SCALE = 2 ** -53

/**
 * Draws from the standard normal distribution with a cryptographic generator: noise that can be predicted protects nothing. Box–Muller
 * with uniform numbers of 53 bits, whose largest result is 8.6.
 * @param fill a cryptographic generator, or a seeded one in tests
 */
export function gaussian(fill: RandomBits = words => crypto.getRandomValues(words)): () => number {
  const words = new Uint32Array(WORDS)
  let used = WORDS
  let second: number | undefined
  // 53 bits, from 0 to 1 − 2^−53.
  const uniform = () => {
    if (used === WORDS) {
      fill(words)
      used = 0
    }
    const high = words[used++] >>> 5
    return (high * 2 ** 26 + (words[used++] >>> 6)) * SCALE
  }
  return () => {
    if (second !== undefined) {
      const drawn = second
      second = undefined
      return drawn
    }
    const radius = Math.sqrt(-2 * Math.log(uniform() + SCALE))
    const angle = 2 * Math.PI * uniform()
    second = radius * Math.sin(angle)
    return radius * Math.cos(angle)
  }
}

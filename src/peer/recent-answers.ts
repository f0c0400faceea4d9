/** The answers to requests with keys: a repeated request gets the answer to the first one, also while that is being learned. */
import type { InputAnswer } from './answers.js'

/** Answers that are kept. Later, a repeated request is answered with new predictions. */
const MAX_KEPT = 16

export class RecentAnswers {
  /** In progress or kept, by key. */
  readonly #known = new Map<string, Promise<InputAnswer>>()
  /** Keys of the answers that are kept, oldest first. */
  readonly #kept: string[] = []

  /** @param key of the request; undefined for one that is learned in any case */
  once(key: string | undefined, learn: () => Promise<InputAnswer>): Promise<InputAnswer> {
    if (key === undefined) return learn()
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const answer = learn()
    this.#known.set(key, answer)
    answer.then(
      () => {
        this.#kept.push(key)
        if (this.#kept.length > MAX_KEPT) this.#known.delete(this.#kept.shift() as string)
      },
      () => this.#known.delete(key)
    )
    return answer
  }
}

/** What belongs to the last few of ascending sequence numbers. Nearly always there are two or three, so they are searched in turn. */

export class SequenceWindow<T> {
  readonly #capacity: number
  readonly #sequences: number[] = []
  readonly #items: T[] = []
  readonly #onEvict: (item: T) => void

  /**
   * @param most how many are kept; the oldest go
   * @param dropped is told what goes
   */
  constructor(most: number, dropped: (item: T) => void = () => undefined) {
    this.#capacity = most
    this.#onEvict = dropped
  }

  add(sequence: number, item: T): void {
    this.#sequences.push(sequence)
    this.#items.push(item)
    if (this.#items.length > this.#capacity) this.#evictFirst()
  }

  get(sequence: number): T | undefined {
    for (let i = this.#sequences.length - 1; i >= 0; i--) if (this.#sequences[i] === sequence) return this.#items[i]
    return undefined
  }

  evictBefore(sequence: number): void {
    while (this.#sequences.length > 0 && this.#sequences[0] < sequence) this.#evictFirst()
  }

  #evictFirst(): void {
    this.#sequences.shift()
    this.#onEvict(this.#items.shift() as T)
  }
}

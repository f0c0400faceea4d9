/** What belongs to the last few of ascending sequence numbers. Nearly always there are two or three, so they are searched in turn. */

export class Recent<T> {
  readonly #most: number
  #sequences: number[] = []
  #items: T[] = []

  /** @param most how many are kept; the oldest go */
  constructor(most: number) {
    this.#most = most
  }

  add(sequence: number, item: T): void {
    this.#sequences.push(sequence)
    this.#items.push(item)
    if (this.#items.length > this.#most) this.#dropFirst(1)
  }

  get(sequence: number): T | undefined {
    for (let i = this.#sequences.length - 1; i >= 0; i--) if (this.#sequences[i] === sequence) return this.#items[i]
    return undefined
  }

  dropBefore(sequence: number): void {
    let older = 0
    while (older < this.#sequences.length && this.#sequences[older] < sequence) older++
    if (older > 0) this.#dropFirst(older)
  }

  #dropFirst(count: number): void {
    this.#sequences = this.#sequences.slice(count)
    this.#items = this.#items.slice(count)
  }
}

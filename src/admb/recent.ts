/** What belongs to the last few of ascending sequence numbers. Nearly always there are two or three, so they are searched in turn. */

export class Recent<T> {
  readonly #most: number
  readonly #sequences: number[] = []
  readonly #items: T[] = []
  readonly #dropped: (item: T) => void

  /**
   * @param most how many are kept; the oldest go
   * @param dropped is told what goes
   */
  constructor(most: number, dropped: (item: T) => void = () => undefined) {
    this.#most = most
    this.#dropped = dropped
  }

  add(sequence: number, item: T): void {
    this.#sequences.push(sequence)
    this.#items.push(item)
    if (this.#items.length > this.#most) this.#dropFirst()
  }

  get(sequence: number): T | undefined {
    for (let i = this.#sequences.length - 1; i >= 0; i--) if (this.#sequences[i] === sequence) return this.#items[i]
    return undefined
  }

  dropBefore(sequence: number): void {
    while (this.#sequences.length > 0 && this.#sequences[0] < sequence) this.#dropFirst()
  }

  #dropFirst(): void {
    this.#sequences.shift()
    this.#dropped(this.#items.shift() as T)
  }
}

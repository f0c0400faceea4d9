/** Things that wait for their event, in slots that are used again: events carry a slot's number. */
export class Slots<T> {
  readonly #items: (T | undefined)[] = []
  readonly #free: number[] = []

  /** @returns its slot */
  put(item: T): number {
    const slot = this.#free.pop() ?? this.#items.length
    this.#items[slot] = item
    return slot
  }

  /** What is in a slot. */
  at(slot: number): T {
    return this.#items[slot] as T
  }

  /** Takes out what is in a slot. */
  take(slot: number): T {
    const item = this.at(slot)
    this.#items[slot] = undefined
    this.#free.push(slot)
    return item
  }
}

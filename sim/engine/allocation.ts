/** Storage for the many small objects of a run: message bytes, and values that wait for their event. */

const SLAB_BYTES = 1 << 16

/** Allocates message bytes from large buffers, because a buffer for each message costs more than the message. */
export class SlabAllocator {
  #buffer = new Uint8Array(SLAB_BYTES)
  #used = 0

  /** @returns bytes that are not shared; their content is undefined */
  allocate(length: number): Uint8Array {
    if (length > SLAB_BYTES / 4) return new Uint8Array(length)
    if (this.#used + length > SLAB_BYTES) {
      this.#buffer = new Uint8Array(SLAB_BYTES)
      this.#used = 0
    }
    const start = this.#used
    this.#used += length
    return this.#buffer.subarray(start, this.#used)
  }
}

/** Holds the values of pending events, which refer to them by slot number. Slots are reused. */
export class SlotTable<T> {
  readonly #items: (T | undefined)[] = []
  readonly #free: number[] = []

  /** @returns the slot of the item */
  put(item: T): number {
    const slot = this.#free.pop() ?? this.#items.length
    this.#items[slot] = item
    return slot
  }

  get(slot: number): T {
    return this.#items[slot] as T
  }

  /** Removes and returns the item in a slot. */
  take(slot: number): T {
    const item = this.get(slot)
    this.#items[slot] = undefined
    this.#free.push(slot)
    return item
  }
}

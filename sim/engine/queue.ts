/**
 * The event queue: a binary heap over preallocated arrays, so that millions of events allocate no objects. Events at equal
 * times are ordered by rank, then by insertion, so that a run is the same on every machine.
 */

export interface Event {
  /** Virtual milliseconds. */
  time: number
  kind: number
  /** Two numbers whose meaning depends on the kind. */
  a: number
  b: number
}

/** Insertion numbers of each rank are below this limit, which exceeds the number of events of any run. */
const RANK = 2 ** 48

export class EventQueue {
  #capacity = 1024
  #size = 0
  #order = 0
  #times = new Float64Array(this.#capacity)
  #orders = new Float64Array(this.#capacity)
  #kinds = new Uint8Array(this.#capacity)
  #as = new Int32Array(this.#capacity)
  #bs = new Int32Array(this.#capacity)
  /** Heap of slots; the other arrays are indexed by slot. */
  #heap = new Int32Array(this.#capacity)
  #free = new Int32Array(this.#capacity)
  #freeCount = 0

  constructor() {
    this.#release(0)
  }

  get size(): number {
    return this.#size
  }

  /** @param rank at equal times, lower ranks come first; 0 or more */
  push(time: number, kind: number, a: number, b: number, rank = 0): void {
    if (this.#freeCount === 0) this.#grow()
    const slot = this.#free[--this.#freeCount]
    this.#times[slot] = time
    this.#orders[slot] = rank * RANK + this.#order++
    this.#kinds[slot] = kind
    this.#as[slot] = a
    this.#bs[slot] = b
    this.#up(this.#size++, slot)
  }

  /** Time of the next event; Infinity if there is none. */
  get nextTime(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.#times[this.#heap[0]]
  }

  /** Removes the next event and writes it to `into`. @returns false if the queue is empty */
  pop(into: Event): boolean {
    if (this.#size === 0) return false
    const slot = this.#heap[0]
    into.time = this.#times[slot]
    into.kind = this.#kinds[slot]
    into.a = this.#as[slot]
    into.b = this.#bs[slot]
    this.#free[this.#freeCount++] = slot
    const last = this.#heap[--this.#size]
    if (this.#size > 0) this.#down(last)
    return true
  }

  #before(x: number, y: number): boolean {
    const difference = this.#times[x] - this.#times[y]
    return difference < 0 || (difference === 0 && this.#orders[x] < this.#orders[y])
  }

  #up(from: number, slot: number): void {
    const heap = this.#heap
    let index = from
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (this.#before(heap[parent], slot)) break
      heap[index] = heap[parent]
      index = parent
    }
    heap[index] = slot
  }

  #down(slot: number): void {
    const heap = this.#heap
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= this.#size) break
      if (child + 1 < this.#size && this.#before(heap[child + 1], heap[child])) child++
      if (this.#before(slot, heap[child])) break
      heap[index] = heap[child]
      index = child
    }
    heap[index] = slot
  }

  #release(from: number): void {
    for (let slot = this.#capacity - 1; slot >= from; slot--) this.#free[this.#freeCount++] = slot
  }

  #grow(): void {
    const before = this.#capacity
    this.#capacity *= 2
    const larger = <T extends { set(other: T): void }>(old: T, fresh: T): T => {
      fresh.set(old)
      return fresh
    }
    this.#times = larger(this.#times, new Float64Array(this.#capacity))
    this.#orders = larger(this.#orders, new Float64Array(this.#capacity))
    this.#kinds = larger(this.#kinds, new Uint8Array(this.#capacity))
    this.#as = larger(this.#as, new Int32Array(this.#capacity))
    this.#bs = larger(this.#bs, new Int32Array(this.#capacity))
    this.#heap = larger(this.#heap, new Int32Array(this.#capacity))
    this.#free = larger(this.#free, new Int32Array(this.#capacity))
    this.#release(before)
  }
}

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

/** A hash of all events of a run: equal for the same scenario and seed, on any machine. */
const scratch = new Float64Array(1)
const words = new Uint32Array(scratch.buffer)

export class TraceHash {
  #low = 0x811c9dc5
  #high = 0x2166136f

  /** Adds an event. @param time virtual milliseconds */
  add(time: number, a: number, b: number): void {
    scratch[0] = time
    this.#word(words[0])
    this.#word(words[1])
    this.#word(a)
    this.#word(b)
  }

  #word(value: number): void {
    this.#low = Math.imul(this.#low ^ value, 0x01000193)
    this.#high = Math.imul((this.#high ^ value) + (this.#low >>> 13), 0x85ebca6b)
  }

  /** 16 hexadecimal digits. */
  get digest(): string {
    return [this.#high, this.#low].map(word => (word >>> 0).toString(16).padStart(8, '0')).join('')
  }
}

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

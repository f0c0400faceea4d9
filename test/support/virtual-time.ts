/** A virtual clock with an event queue (binary heap; FIFO for equal times), and seeded randomness. */

interface ScheduledEvent {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

const before = (a: ScheduledEvent, b: ScheduledEvent): boolean => (a.at === b.at ? a.order < b.order : a.at < b.at)

export class EventQueue {
  readonly #heap: ScheduledEvent[] = []
  #order = 0
  now = 0

  push(at: number, run: () => void): void {
    if (at === Number.POSITIVE_INFINITY) return
    const heap = this.#heap
    const item = { at, order: this.#order++, run }
    let i = heap.push(item) - 1
    while (i > 0) {
      const up = (i - 1) >> 1
      if (!before(item, heap[up])) break
      heap[i] = heap[up]
      i = up
    }
    heap[i] = item
  }

  /** When the next event is due; Infinity if there is none. */
  get nextAt(): number {
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY
  }

  /** Runs the next event if it is due by `end`; otherwise advances the clock to `end` and returns false. */
  step(end: number): boolean {
    const heap = this.#heap
    const first = heap[0]
    if (first === undefined || first.at > end) {
      this.now = end
      return false
    }
    const last = heap.pop() as ScheduledEvent
    if (heap.length > 0) {
      let i = 0
      for (let child = 1; child < heap.length; child = 2 * i + 1) {
        if (child + 1 < heap.length && before(heap[child + 1], heap[child])) child += 1
        if (!before(heap[child], last)) break
        heap[i] = heap[child]
        i = child
      }
      heap[i] = last
    }
    this.now = Math.max(this.now, first.at)
    first.run()
    return true
  }
}

/** Uniform numbers in [0, 1) from a 32-bit seed (a Weyl sequence with an avalanche finaliser). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
}

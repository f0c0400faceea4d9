/**
 * Synchronization of the executor's thread and the parameter server's threads through shared integers, without an event
 * loop, so that all calls are synchronous. A layer's memory belongs to its server thread from `post` until the update
 * is done, and to the executor otherwise.
 */

/** How often a thread that waits for an update looks at what else may have happened. */
const LOOK_MS = 500

/** Indices of the global cells. They are followed by one cell per thread and seven per block. */
const STOP = 0
const DROPPED = 1
const FAILED = 2
const FIXED = 3

/** A gradient to be applied. */
export interface Posted {
  /** Index of its slot. */
  readonly slot: number
  /** Number of inputs in the sum. */
  readonly count: number
  readonly updates: number
  /** Among the gradients that are summed with those of other devices: see `DeviceSums`. */
  readonly number: number
}

/** @returns whether the gradient was finite */
type StepFunction = (block: number, posted: Posted) => boolean

export class SharedSignals {
  readonly #cells: Int32Array
  readonly #threads: number
  readonly #blocks: number

  /** @param shared the `shared` property of another thread's instance; newly allocated if absent */
  constructor(threads: number, blocks: number, shared?: SharedArrayBuffer) {
    this.#threads = threads
    this.#blocks = blocks
    this.#cells = new Int32Array(shared ?? new SharedArrayBuffer(4 * (FIXED + threads + 7 * blocks)))
  }

  get shared(): SharedArrayBuffer {
    return this.#cells.buffer as SharedArrayBuffer
  }

  /** Number of gradients that were not finite. */
  get dropped(): number {
    return Atomics.load(this.#cells, DROPPED)
  }

  get hasFailed(): boolean {
    return Atomics.load(this.#cells, FAILED) !== 0
  }

  /** Executor: hands a gradient in a slot over to the block's server thread. */
  post(block: number, { slot, count, updates, number }: Posted): void {
    Atomics.store(this.#cells, this.#cell(2, block), count)
    Atomics.store(this.#cells, this.#cell(3, block), updates)
    Atomics.store(this.#cells, this.#cell(4, block), slot)
    Atomics.store(this.#cells, this.#cell(5, block), number)
    Atomics.add(this.#cells, this.#cell(0, block), 1)
    this.#signal(block % this.#threads)
  }

  /** Whether the block's update is done. */
  isDone(block: number): boolean {
    return Atomics.load(this.#cells, this.#cell(1, block)) === Atomics.load(this.#cells, this.#cell(0, block))
  }

  /** Executor: blocks until the block's update is done, or `fail` was called. @param look called now and then */
  wait(block: number, look?: () => void): void {
    const posted = Atomics.load(this.#cells, this.#cell(0, block))
    for (;;) {
      const done = Atomics.load(this.#cells, this.#cell(1, block))
      if (done === posted || this.hasFailed) return
      Atomics.wait(this.#cells, this.#cell(1, block), done, look && LOOK_MS)
      look?.()
    }
  }

  /** Executor: a step begins, in which other devices call `waitForStep`. */
  beginStep(): void {
    for (let block = 0; block < this.#blocks; block++)
      Atomics.store(this.#cells, this.#cell(6, block), Atomics.load(this.#cells, this.#cell(0, block)))
  }

  /** Another device: blocks until the block's update of the step before is done. The executor may have posted the next one. */
  waitForStep(block: number): void {
    for (;;) {
      const done = Atomics.load(this.#cells, this.#cell(1, block))
      if (done >= Atomics.load(this.#cells, this.#cell(6, block))) return
      Atomics.wait(this.#cells, this.#cell(1, block), done)
    }
  }

  /** The block's weights are written by a thread that calls `arrive`; `wait` waits until then. */
  expect(block: number): void {
    Atomics.add(this.#cells, this.#cell(0, block), 1)
  }

  arrive(block: number): void {
    Atomics.store(this.#cells, this.#cell(1, block), Atomics.load(this.#cells, this.#cell(0, block)))
    Atomics.notify(this.#cells, this.#cell(1, block))
  }

  /** Ends all waits, now and later. @param blocks whose updates are not done any more */
  fail(blocks: Iterable<number>): void {
    Atomics.store(this.#cells, FAILED, 1)
    for (const block of blocks) {
      // Changed, so that a thread that is about to wait does not.
      Atomics.sub(this.#cells, this.#cell(1, block), 1)
      Atomics.notify(this.#cells, this.#cell(1, block))
    }
  }

  stop(): void {
    Atomics.store(this.#cells, STOP, 1)
    for (let thread = 0; thread < this.#threads; thread++) this.#signal(thread)
  }

  /**
   * Server thread: calls `step` for each posted block of this thread, until `stop`. Blocks the thread.
   * @param isElsewhere whether another process updates a block @default none
   */
  serve(thread: number, step: StepFunction, isElsewhere: (block: number) => boolean = () => false): void {
    const cells = this.#cells
    while (Atomics.load(cells, STOP) === 0) {
      const seen = Atomics.load(cells, FIXED + thread)
      // Gradients before the one that is found first were posted earlier, so that they are found the second time.
      const first = () => this.#first(thread, isElsewhere)
      while (first() !== undefined) this.#serveOne(first() as number, step)
      Atomics.wait(cells, FIXED + thread, seen)
    }
  }

  countDropped(): void {
    Atomics.add(this.#cells, DROPPED, 1)
  }

  /** The block of a thread whose gradient is the first of those that are posted; the last block, if gradients have no number. */
  #first(thread: number, isElsewhere: (block: number) => boolean): number | undefined {
    const cells = this.#cells
    let [first, number]: [number | undefined, number] = [undefined, Number.POSITIVE_INFINITY]
    for (let block = this.#blocks - 1; block >= 0; block--) {
      if (block % this.#threads !== thread || isElsewhere(block) || this.isDone(block)) continue
      const own = Atomics.load(cells, this.#cell(5, block))
      if (own < number) [first, number] = [block, own]
    }
    return first
  }

  #serveOne(block: number, step: StepFunction): void {
    const cells = this.#cells
    const posted = Atomics.load(cells, this.#cell(0, block))
    try {
      const [count, updates, slot, number] = [2, 3, 4, 5].map(field => Atomics.load(cells, this.#cell(field, block)))
      if (!step(block, { slot, count, updates, number })) this.countDropped()
    } catch (error) {
      Atomics.store(cells, FAILED, 1)
      throw error
    } finally {
      Atomics.store(cells, this.#cell(1, block), posted)
      Atomics.notify(cells, this.#cell(1, block))
    }
  }

  #signal(thread: number): void {
    Atomics.add(this.#cells, FIXED + thread, 1)
    Atomics.notify(this.#cells, FIXED + thread)
  }

  #cell(field: number, block: number): number {
    return FIXED + this.#threads + field * this.#blocks + block
  }
}

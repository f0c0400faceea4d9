/**
 * Synchronization of the executor's thread and the parameter server's threads through shared integers, without an event
 * loop, so that all calls are synchronous. A layer's memory belongs to its server thread from `post` until the update
 * is done, and to the executor otherwise.
 */

/** Indices of the global cells. They are followed by one cell per thread and five per block. */
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
    this.#cells = new Int32Array(shared ?? new SharedArrayBuffer(4 * (FIXED + threads + 5 * blocks)))
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
  post(block: number, { slot, count, updates }: Posted): void {
    Atomics.store(this.#cells, this.#cell(2, block), count)
    Atomics.store(this.#cells, this.#cell(3, block), updates)
    Atomics.store(this.#cells, this.#cell(4, block), slot)
    Atomics.add(this.#cells, this.#cell(0, block), 1)
    this.#signal(block % this.#threads)
  }

  /** Whether the block's update is done. */
  isDone(block: number): boolean {
    return Atomics.load(this.#cells, this.#cell(1, block)) === Atomics.load(this.#cells, this.#cell(0, block))
  }

  /** Executor: blocks until the block's update is done, or `fail` was called. */
  wait(block: number): void {
    const posted = Atomics.load(this.#cells, this.#cell(0, block))
    for (;;) {
      const done = Atomics.load(this.#cells, this.#cell(1, block))
      if (done === posted || this.hasFailed) return
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

  /** Ends all waits, now and later. */
  fail(): void {
    Atomics.store(this.#cells, FAILED, 1)
    for (let block = 0; block < this.#blocks; block++) {
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
      // The backward pass pushes gradients from the last layer to the first.
      for (let block = this.#blocks - 1; block >= 0; block--) {
        if (block % this.#threads === thread && !isElsewhere(block)) this.#serveOne(block, step)
      }
      Atomics.wait(cells, FIXED + thread, seen)
    }
  }

  countDropped(): void {
    Atomics.add(this.#cells, DROPPED, 1)
  }

  #serveOne(block: number, step: StepFunction): void {
    const cells = this.#cells
    const posted = Atomics.load(cells, this.#cell(0, block))
    if (Atomics.load(cells, this.#cell(1, block)) === posted) return
    try {
      const [count, updates, slot] = [2, 3, 4].map(field => Atomics.load(cells, this.#cell(field, block)))
      if (!step(block, { slot, count, updates })) this.countDropped()
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

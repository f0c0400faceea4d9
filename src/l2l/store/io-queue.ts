/**
 * Commands to an I/O thread, in order, through shared memory: neither end needs an event loop, so that the executor's
 * calls stay synchronous.
 */

export const READ = 0
export const WRITE = 1
export const COMMIT = 2

export interface IoCommand {
  readonly kind: typeof READ | typeof WRITE | typeof COMMIT
  readonly block: number
  readonly array: number
  readonly slot: number
  /** Where the array is in memory. */
  readonly memory: number
  readonly offset: number
}

/** Commands that wait at a time. */
const LENGTH = 1024
const FIELDS = 6
/** Indices of the shared integers. */
const POSTED = 0
const DONE = 1
const STOPPED = 2
const FAILED = 3
const CELLS = 4

export class IoQueue {
  readonly #cells: Int32Array
  readonly #ring: Float64Array

  /** @param shared of the other end; newly allocated if absent */
  constructor(readonly shared = new SharedArrayBuffer(4 * CELLS + 8 * LENGTH * FIELDS)) {
    this.#cells = new Int32Array(shared, 0, CELLS)
    this.#ring = new Float64Array(shared, 4 * CELLS)
  }

  get hasFailed(): boolean {
    return Atomics.load(this.#cells, FAILED) !== 0
  }

  /** @returns a number for `wait` */
  post({ kind, block, array, slot, memory, offset }: IoCommand): number {
    const ticket = Atomics.load(this.#cells, POSTED) + 1
    this.wait(ticket - LENGTH)
    this.#ring.set([kind, block, array, slot, memory, offset], (ticket % LENGTH) * FIELDS)
    this.#add(POSTED)
    return ticket
  }

  isDone(ticket: number): boolean {
    return Atomics.load(this.#cells, DONE) >= ticket
  }

  /** Blocks until the command is done. After a failure, all commands are. */
  wait(ticket: number): void {
    for (;;) {
      const done = Atomics.load(this.#cells, DONE)
      if (done >= ticket) return
      Atomics.wait(this.#cells, DONE, done)
    }
  }

  /** Blocks until all commands that were posted are done. */
  drain(): void {
    this.wait(Atomics.load(this.#cells, POSTED))
  }

  /** The thread ends after the commands that were posted. */
  stop(): void {
    Atomics.store(this.#cells, STOPPED, 1)
    Atomics.notify(this.#cells, POSTED)
  }

  /** I/O thread: runs each command, until `stop`. After an error, further commands have no effect. */
  serve(run: (command: IoCommand) => void, onError: (error: Error) => void): void {
    const cells = this.#cells
    for (;;) {
      const done = Atomics.load(cells, DONE)
      if (Atomics.load(cells, POSTED) === done) {
        if (Atomics.load(cells, STOPPED) !== 0) return
        // `stop` may come before the wait.
        Atomics.wait(cells, POSTED, done, 100)
        continue
      }
      if (!this.hasFailed) {
        const at = ((done + 1) % LENGTH) * FIELDS
        const [kind, block, array, slot, memory, offset] = this.#ring.subarray(at, at + FIELDS)
        try {
          run({ kind: kind as IoCommand['kind'], block, array, slot, memory, offset })
        } catch (error) {
          onError(error as Error)
          Atomics.store(cells, FAILED, 1)
        }
      }
      this.#add(DONE)
    }
  }

  #add(cell: number): void {
    Atomics.add(this.#cells, cell, 1)
    Atomics.notify(this.#cells, cell)
  }
}

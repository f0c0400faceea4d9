/** The messages of a worker thread, for which the thread that has started it blocks. */
import { DeviceError } from '../../device/types.js'
import type { WorkerMessage } from './messages.js'

/** A worker without any activity for this time is considered dead. */
const TIMEOUT_MS = 120_000

export class Inbox {
  readonly #cells: Int32Array
  readonly #cell: number
  readonly #take: () => WorkerMessage | undefined
  #next: WorkerMessage | undefined

  /**
   * @param cells shared with the worker, which adds 1 to the number at `cell` after each gradient and each message
   * @param take removes and returns a message that has arrived; undefined if there is none
   */
  constructor(cells: Int32Array, cell: number, take: () => WorkerMessage | undefined) {
    this.#cells = cells
    this.#cell = cell
    this.#take = take
  }

  /** Blocks until the condition holds, which only the worker's activity changes. @returns the next message if it came before */
  waitUntil(condition: () => boolean): WorkerMessage | undefined {
    for (;;) {
      const seen = Atomics.load(this.#cells, this.#cell)
      if (condition()) return undefined
      this.#next ??= this.#take()
      // The worker may have made the condition true and then sent the message.
      if (this.#next !== undefined) return condition() ? undefined : this.#takeNext()
      if (Atomics.wait(this.#cells, this.#cell, seen, TIMEOUT_MS) === 'timed-out')
        return { kind: 'failed', code: DeviceError.code, reason: `no response for ${TIMEOUT_MS / 1000} s` }
    }
  }

  /** Blocks until there is a message. */
  receive(): WorkerMessage {
    return this.waitUntil(() => false) as WorkerMessage
  }

  #takeNext(): WorkerMessage | undefined {
    const message = this.#next
    this.#next = undefined
    return message
  }
}

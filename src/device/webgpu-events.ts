/**
 * Dawn's events, run when this thread wants them. In Node.js the package webgpu finishes what it was asked for (an adapter found, a
 * buffer mapped) in callbacks, which it has the global `setImmediate` call for as long as something is under way. A thread
 * that waits for a buffer without returning to its event loop would wait forever; so wherever Dawn is called, it is given
 * another `setImmediate`, which keeps the callback for whoever waits.
 */
import { BackendError } from './types.js'

type Callback = () => void

/** Looked at so often before a pause is made between two looks. */
const EAGER_POLLS = 20
const PAUSE_MS = 0.05

export class DawnEvents {
  #callbacks: Callback[] = []
  readonly #never = new Int32Array(new SharedArrayBuffer(4))

  /** Calls Dawn. Whatever may leave something under way has to be called by this. */
  call<T>(call: () => T): T {
    const usual = globalThis.setImmediate
    globalThis.setImmediate = ((callback: Callback) => this.#callbacks.push(callback)) as unknown as typeof setImmediate
    try {
      return call()
    } finally {
      globalThis.setImmediate = usual
    }
  }

  /** The same for a promise, while the event loop goes on. */
  async waitAsync<T>(call: () => Promise<T>): Promise<T> {
    const promise = this.call(call)
    let isPending = true
    const drain = () => {
      isPending = false
    }
    promise.then(drain, drain)
    for (let looks = 0; isPending; looks++) {
      this.#poll()
      await (looks < EAGER_POLLS ? undefined : new Promise(resolve => setTimeout(resolve, 1)))
    }
    return promise
  }

  /** Blocks the thread as long as it is pending. @throws BackendError if Dawn has nothing under way that could end it */
  wait(isPending: () => boolean): void {
    for (let looks = 0; isPending(); looks++) {
      if (!this.#poll()) throw new BackendError('this version of the package webgpu cannot be waited for')
      if (looks >= EAGER_POLLS && isPending()) Atomics.wait(this.#never, 0, 0, PAUSE_MS)
    }
  }

  /** Ends what was broken off: Dawn ends the whole process over a promise that is forgotten. */
  drain(): void {
    for (let looks = 0; looks < EAGER_POLLS && this.#poll(); looks++);
  }

  /** @returns whether there was anything to look after */
  #poll(): boolean {
    const planned = this.#callbacks
    this.#callbacks = []
    for (const callback of planned) this.call(callback)
    return planned.length > 0
  }
}

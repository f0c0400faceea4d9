/**
 * Dawn's events, run when this thread wants them. In Node.js the package webgpu finishes what it was asked for (an adapter found, a
 * buffer mapped) in callbacks, which it has the global `setImmediate` call for as long as something is under way. A thread
 * that waits for a buffer without returning to its event loop would wait forever; so wherever Dawn is called, it is given
 * another `setImmediate`, which keeps the callback for whoever waits.
 */
import { BackendError } from './errors.js'

type Callback = () => void

/** Looked at so often before a pause is made between two looks. */
const EAGER_LOOKS = 20
const PAUSE_MS = 0.05

export class DawnEvents {
  #planned: Callback[] = []
  readonly #never = new Int32Array(new SharedArrayBuffer(4))

  /** Calls Dawn. Whatever may leave something under way has to be called by this. */
  calling<T>(call: () => T): T {
    const usual = globalThis.setImmediate
    globalThis.setImmediate = ((callback: Callback) => this.#planned.push(callback)) as unknown as typeof setImmediate
    try {
      return call()
    } finally {
      globalThis.setImmediate = usual
    }
  }

  /** The same for a promise, while the event loop goes on. */
  async finished<T>(call: () => Promise<T>): Promise<T> {
    const promise = this.calling(call)
    let isPending = true
    const settle = () => {
      isPending = false
    }
    promise.then(settle, settle)
    for (let looks = 0; isPending; looks++) {
      this.#look()
      await (looks < EAGER_LOOKS ? undefined : new Promise(resolve => setTimeout(resolve, 1)))
    }
    return promise
  }

  /** Blocks the thread as long as it is pending. @throws BackendError if Dawn has nothing under way that could end it */
  wait(isPending: () => boolean): void {
    for (let looks = 0; isPending(); looks++) {
      if (!this.#look()) throw new BackendError('this version of the package webgpu cannot be waited for')
      if (looks >= EAGER_LOOKS && isPending()) Atomics.wait(this.#never, 0, 0, PAUSE_MS)
    }
  }

  /** Ends what was broken off: Dawn ends the whole process over a promise that is forgotten. */
  settle(): void {
    for (let looks = 0; looks < EAGER_LOOKS && this.#look(); looks++);
  }

  /** @returns whether there was anything to look after */
  #look(): boolean {
    const planned = this.#planned
    this.#planned = []
    for (const callback of planned) this.calling(callback)
    return planned.length > 0
  }
}

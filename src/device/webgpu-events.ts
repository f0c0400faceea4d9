/**
 * Runs Dawn's event processing on demand. The package webgpu completes operations (adapter requests, buffer mappings)
 * in callbacks that it schedules with the global `setImmediate` while operations are pending. A thread that waits for a
 * buffer without returning to its event loop would block forever. Therefore calls to Dawn run with a `setImmediate`
 * that stores the callback for `wait`.
 */
import { BackendError } from './types.js'

type Callback = () => void

/** Number of polls before pausing between polls. */
const EAGER_POLLS = 20
const PAUSE_MS = 0.05

export class DawnEvents {
  #callbacks: Callback[] = []
  readonly #sleeper = new Int32Array(new SharedArrayBuffer(4))

  /** Calls Dawn. Every call that may start an asynchronous operation must go through this method. */
  call<T>(call: () => T): T {
    const original = globalThis.setImmediate
    globalThis.setImmediate = ((callback: Callback) => this.#callbacks.push(callback)) as unknown as typeof setImmediate
    try {
      return call()
    } finally {
      globalThis.setImmediate = original
    }
  }

  /** Calls Dawn and awaits its promise without blocking the event loop. */
  async waitAsync<T>(call: () => Promise<T>): Promise<T> {
    const promise = this.call(call)
    let isPending = true
    const drain = () => {
      isPending = false
    }
    promise.then(drain, drain)
    for (let polls = 0; isPending; polls++) {
      this.#poll()
      await (polls < EAGER_POLLS ? undefined : new Promise(resolve => setTimeout(resolve, 1)))
    }
    return promise
  }

  /** Blocks the thread while `isPending`. @throws BackendError if Dawn has no pending operation */
  wait(isPending: () => boolean): void {
    for (let polls = 0; isPending(); polls++) {
      if (!this.#poll()) throw new BackendError('this version of the package webgpu is not supported')
      if (polls >= EAGER_POLLS && isPending()) Atomics.wait(this.#sleeper, 0, 0, PAUSE_MS)
    }
  }

  /** Completes cancelled operations: Dawn aborts the process if a promise is dropped. */
  drain(): void {
    for (let polls = 0; polls < EAGER_POLLS && this.#poll(); polls++);
  }

  /** Runs stored callbacks. @returns whether there were any */
  #poll(): boolean {
    const callbacks = this.#callbacks
    this.#callbacks = []
    for (const callback of callbacks) this.call(callback)
    return callbacks.length > 0
  }
}

/**
 * `Promise.withResolvers`, which Node.js 20 lacks and libp2p uses. Modules that import libp2p packages at run time import this
 * one first.
 */
if (typeof Promise.withResolvers !== 'function') {
  Promise.withResolvers = function withResolvers<T>(): PromiseWithResolvers<T> {
    let resolve!: (value: T | PromiseLike<T>) => void
    let reject!: (reason?: unknown) => void
    const promise = new Promise<T>((fulfil, refuse) => {
      resolve = fulfil
      reject = refuse
    })
    return { promise, resolve, reject }
  }
}

/**
 * Node 20 has no `Promise.withResolvers`, which the libp2p packages call. Every file here that imports one of them at run
 * time imports this one first.
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

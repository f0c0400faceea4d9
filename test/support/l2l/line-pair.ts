/** The line of a device worker in one thread, for tests. */
import { setImmediate } from 'node:timers/promises'
import type { DeviceEvents, DeviceLine } from '../../../src/l2l/group/index.js'

type Handler = Parameters<DeviceLine['receive']>[0]

/** Two ends of a line. Messages are copied, as by a stream. @param onSent called with each message of the first end, and the number of its bytes */
export function linePair(onSent: (message: object, bytes: number) => void): [DeviceLine, DeviceLine] {
  const handlers: (Handler | undefined)[] = [undefined, undefined]
  let order = Promise.resolve()
  let isOpen = true
  const close = (reason: string) => {
    if (!isOpen) return
    isOpen = false
    for (const handler of handlers) handler?.closed(reason)
  }
  const end = (self: 0 | 1): DeviceLine => ({
    send(message, bytes = []) {
      const [text, copy] = [JSON.stringify(message), new Uint8Array(Buffer.concat(bytes))]
      if (self === 0) onSent(message, copy.length)
      order = order.then(async () => {
        await setImmediate()
        if (isOpen) handlers[1 - self]?.message(JSON.parse(text), copy)
      })
    },
    receive(handler) {
      handlers[self] = handler
    },
    close
  })
  return [end(0), end(1)]
}

/** Handlers of a worker of which only the results matter. */
export const silentEvents: DeviceEvents = {
  ready: () => undefined,
  executed: () => undefined,
  holds: () => undefined
}

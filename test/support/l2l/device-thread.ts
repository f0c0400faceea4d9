/** A thread with both ends of a device worker of another process, connected in memory, for tests that block their own thread. */
import { setImmediate } from 'node:timers/promises'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { type DeviceLine, RemoteDevice, serveDevice } from '../../../src/l2l/group/index.js'
import type { WorkerInit } from '../../../src/l2l/index.js'

type Handler = Parameters<DeviceLine['receive']>[0]

/** What the thread is started with. */
export interface DeviceThreadData {
  readonly init: WorkerInit
  /** Number of gradients, or messages to other stages, after which the connection ends. @default it stays open */
  readonly endsAfter?: number
}

/** Two ends of a line. Messages are copied, as by a stream. @param onSent called with each message of the first end, and the number of its bytes */
function linePair(onSent: (message: object, bytes: number) => void): [DeviceLine, DeviceLine] {
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

const { init, endsAfter = Number.POSITIVE_INFINITY } = workerData as DeviceThreadData
const main = parentPort as MessagePort
let [gradients, returned] = [0, 0]
const [workerEnd, peerEnd] = linePair((message, bytes) => {
  const { kind } = message as { readonly kind: string }
  if ((kind === 'gradient' || kind === 'mail') && ++gradients > endsAfter) workerEnd.close('the test ends it')
  returned += bytes
  if (kind === 'result') main.postMessage({ kind: 'returned', bytes: returned })
  if (kind === 'result') returned = 0
})
const onReady = (device: string) => main.postMessage({ kind: 'ready', device })
const onClosed = (reason: string) => main.postMessage({ kind: 'closed', reason })
// The first message is the token.
peerEnd.receive({ message: () => new RemoteDevice(peerEnd, init, onReady, onClosed), closed: onClosed })
void serveDevice(workerEnd, 'token', { backend: 'cpu' }, { ready: () => undefined, executed: () => undefined })

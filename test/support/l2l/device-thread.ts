/** A thread with both ends of a device worker of another process, connected in memory, for tests that block their own thread. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { type DeviceLine, RemoteDevice, serveDevice } from '../../../src/l2l/group/index.js'
import type { WorkerInit } from '../../../src/l2l/index.js'
import { linePair, silentEvents } from './line-pair.js'

/** What the thread is started with. */
export interface DeviceThreadData {
  readonly init: WorkerInit
  /** Number of gradients, or messages to other stages, after which the connection ends. @default it stays open */
  readonly endsAfter?: number
  /** Fields that replace those of the messages of a kind. @default none */
  readonly damage?: Readonly<Record<string, object>>
}

const { init, endsAfter = Number.POSITIVE_INFINITY, damage = {} } = workerData as DeviceThreadData
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
const send: DeviceLine['send'] = (message, bytes) =>
  workerEnd.send({ ...message, ...damage[(message as { readonly kind: string }).kind] }, bytes)
void serveDevice({ ...workerEnd, send }, 'token', { backend: 'cpu' }, silentEvents)

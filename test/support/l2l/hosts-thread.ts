/** A thread with both ends of the lines to the hosts of a partitioned network, for tests that block their own thread. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { BlockHosts, RemoteDevice, serveDevice } from '../../../src/l2l/group/index.js'
import type { WorkerInit } from '../../../src/l2l/index.js'
import type { HostsInit } from '../../../src/l2l/training/partition.js'
import { linePair, silentEvents } from './line-pair.js'

/** What the thread is started with. */
export interface HostsThreadData {
  readonly init: HostsInit
  readonly port: MessagePort
  /** Number of hosts, the trainer's included. */
  readonly count: number
  /** Number of updates after which the last host ends. @default it stays */
  readonly endsAfter?: number
}

const { init, port, count, endsAfter = Number.POSITIVE_INFINITY } = workerData as HostsThreadData
let updates = 0
const lines = Array.from({ length: count - 1 }, (_, k) => {
  const isLast = k === count - 2
  const [hostEnd, trainerEnd] = linePair(message => {
    const { kind } = message as { readonly kind: string }
    if (kind === 'stepped' && isLast && ++updates > endsAfter) hostEnd.close('the test ends it')
  })
  void serveDevice(hostEnd, 'token', { backend: 'cpu' }, silentEvents)
  return trainerEnd
})
// The first message, the token, is for nobody.
for (const line of lines) line.receive({ message: () => undefined, closed: () => undefined })
setTimeout(() => {
  const hosts = new BlockHosts(lines, init, port)
  const parent = parentPort as MessagePort
  parent.on('message', ({ host, device }: { readonly host: number; readonly device: WorkerInit }) => {
    new RemoteDevice(
      hosts.deviceLine(host),
      device,
      name => parent.postMessage({ host, name }),
      () => undefined
    )
  })
}, 50)
port.on('close', () => process.exit())

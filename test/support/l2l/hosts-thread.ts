/** A thread with both ends of the lines to the hosts of a partitioned network, for tests that block their own thread. */
import { type MessagePort, workerData } from 'node:worker_threads'
import { BlockHosts, serveDevice } from '../../../src/l2l/group/index.js'
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
setTimeout(() => new BlockHosts(lines, init, port), 50)

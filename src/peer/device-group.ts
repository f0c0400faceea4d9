/** Device workers of a peer: admits those that have its token, and connects them with the learner thread. */
import { awaitToken, type DeviceLine, RemoteDevice } from '../l2l/group/index.js'
import type { WorkerInit } from '../l2l/index.js'
import type { Log } from '../network/types.js'
import type { LearnerHandle } from './learner-handle.js'

export interface DeviceGroupOptions {
  readonly token: string
  readonly learner: LearnerHandle
  readonly log: Log
}

export class DeviceGroup {
  readonly #options: DeviceGroupOptions
  /** Workers that wait for the learner thread, by number. */
  readonly #joining = new Map<number, { readonly line: DeviceLine; readonly from: string }>()
  #next = 0

  constructor(options: DeviceGroupOptions) {
    this.#options = options
  }

  /** A worker has connected. @param from its id */
  accept(line: DeviceLine, from: string): void {
    const { token, learner, log } = this.#options
    const refused = () => log('warn', `a device worker was refused: its token is another`, { peer: from })
    const admitted = () => {
      // Until the learner thread answers, the worker sends nothing.
      line.receive({
        message: () => line.close('a message came too early'),
        closed: () => this.#joining.delete(device)
      })
      const device = this.#next++
      this.#joining.set(device, { line, from })
      learner.post({ kind: 'device-joined', device })
    }
    awaitToken(line, token, admitted, refused)
  }

  /** The learner thread has prepared for a worker. */
  prepared(device: number, init: WorkerInit | undefined): void {
    const { learner, log } = this.#options
    const joining = this.#joining.get(device)
    this.#joining.delete(device)
    if (init === undefined) joining?.line.close('this peer has no place for another worker')
    if (init === undefined) return
    const { worker } = init
    if (joining === undefined) {
      init.port.close()
      learner.post({ kind: 'device-lost', worker })
      return
    }
    const { line, from } = joining
    new RemoteDevice(
      line,
      init,
      name => {
        log('info', `a device worker has joined: ${name} of ${from}`, { peer: from })
        learner.post({ kind: 'device-ready', worker, name, from })
      },
      reason => {
        log('warn', `a device worker has gone: ${reason}`, { peer: from, reason })
        learner.post({ kind: 'device-lost', worker })
      }
    )
  }
}

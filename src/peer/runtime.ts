/** What a peer needs of Node.js besides the platform: threads, plug-ins, and its own version. `#runtime` in `package.json`. */
import { Worker } from 'node:worker_threads'
import { DeviceGroup, type DeviceGroupOptions } from './device-group.js'
import type { FromLearner, ThreadInit, ToLearner } from './thread-messages.js'
import type { ThreadPort } from './thread-port.js'

export { loadPlugins } from '../task/plugins.js'
export { softwareVersion } from './software.js'

/** Devices of other processes that join those of this peer. */
export function openDevices(options: DeviceGroupOptions): DeviceGroup {
  return new DeviceGroup(options)
}

/** Starts the learner thread. It reads standard input if its stream does. */
export function startLearner(init: ThreadInit): ThreadPort<ToLearner, FromLearner> {
  const { stdin = process.stdin, ...stream } = init.stream ?? {}
  const worker = new Worker(new URL('./learner-thread.js', import.meta.url), {
    workerData: { ...init, stream: init.stream && stream },
    transferList: init.start?.map(({ buffer }) => buffer as ArrayBuffer),
    stdin: init.stream?.data === '-'
  })
  const input = worker.stdin
  if (input) stdin.pipe(input)
  return {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    onMessage: handler => void worker.on('message', handler),
    onFailure(handler) {
      worker.on('error', error => handler(error as Error))
      worker.on('exit', code => handler(`the learner thread ended with code ${code}`))
    },
    close() {
      if (input === null) return
      stdin.unpipe(input)
      stdin.pause()
      process.stdin.pause()
    }
  }
}

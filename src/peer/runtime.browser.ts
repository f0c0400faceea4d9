/** What a peer needs of a browser besides the platform: `#runtime` in `package.json`. */

import { PlatformError } from '../platform/browser/index.js'
import type { DeviceGroup, DeviceGroupOptions } from './device-group.js'
import type { FromLearner, ThreadInit, ToLearner } from './thread-messages.js'
import type { ThreadPort } from './thread-port.js'

declare const ADMB_VERSION: string

export function softwareVersion(): string {
  return ADMB_VERSION
}

/** @throws PlatformError if there are any */
export async function loadPlugins(modules: readonly string[]): Promise<undefined> {
  if (modules.length > 0) throw new PlatformError('a peer in a browser loads no plug-ins: start it with Node.js')
}

/** @throws PlatformError */
export function openDevices(_options: DeviceGroupOptions): DeviceGroup {
  throw new PlatformError('a peer in a browser admits no device workers: start it with Node.js')
}

/** Starts the learner in a Web Worker. */
export function startLearner(init: ThreadInit): ThreadPort<ToLearner, FromLearner> {
  const worker = new Worker(new URL('../browser/learner-worker.ts', import.meta.url), {
    type: 'module',
    name: 'admb learner'
  })
  worker.postMessage(init)
  return {
    post: (message, transfer = []) => worker.postMessage(message, [...transfer] as ArrayBuffer[]),
    onMessage(handler) {
      worker.onmessage = ({ data }) => handler(data)
    },
    onFailure(handler) {
      worker.onerror = ({ message }) => handler(message || 'the learner did not load')
      worker.onmessageerror = () => handler('a message of the learner is not readable')
    },
    close: () => worker.terminate()
  }
}

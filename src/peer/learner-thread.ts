/** Entry of the learner thread under Node.js. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { openStream } from '../data/index.js'
import { mapMemory } from '../program/shared-memory.js'
import { loadPlugins } from '../task/plugins.js'
import { requestedText } from '../task/text.js'
import { downloadOf } from './download.js'
import { fail, type LearnerThread, runLearner } from './learner-service.js'
import type { ThreadInit, ToLearner } from './thread-messages.js'

const main = parentPort as MessagePort
const init = workerData as ThreadInit
let receive = (_message: ToLearner): void => undefined
const port: LearnerThread['port'] = {
  post: (message, transfer) => main.postMessage(message, transfer),
  onMessage(handler) {
    receive = handler
    // Messages wait until somebody listens.
    if (main.listenerCount('message') === 0) main.on('message', message => receive(message))
  },
  onFailure: () => undefined,
  close: () => main.close()
}

async function run(): Promise<void> {
  await loadPlugins(init.plugins)
  await runLearner({ init, port, open: openStream, readText: requestedText, encode: downloadOf, map: mapMemory })
}

run().catch(error => fail(port, error))

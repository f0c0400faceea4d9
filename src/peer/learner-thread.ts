/** Entry of the learner thread under Node.js. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { openStream } from '../streams/index.js'
import { loadPlugins } from '../task/plugins.js'
import { requestedText } from '../task/text.js'
import { fail, type LearnerThread, runLearner } from './learner-service.js'
import type { LearnerInit } from './thread-messages.js'

const main = parentPort as MessagePort
const init = workerData as LearnerInit
const port: LearnerThread['port'] = {
  post: (message, transfer) => main.postMessage(message, transfer),
  onMessage: handler => void main.on('message', handler),
  onFailure: () => undefined,
  close: () => main.close()
}

loadPlugins(init.plugins).then(
  () => runLearner({ init, port, open: openStream, readText: requestedText }),
  error => fail(port, error)
)

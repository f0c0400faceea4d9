/** Entry of the learner thread in a browser. Its first message is what it is started with. */
import { config } from 'zod'
import { type LearnerThread, runLearner } from '../peer/learner-service.js'
import type { ThreadInit, ToLearner } from '../peer/thread-messages.js'
import { PlatformError } from '../platform/browser/index.js'

// The content security policy forbids compiled checks.
config({ jitless: true })

const early: ToLearner[] = []
let receive = (message: ToLearner): void => void early.push(message)

const port: LearnerThread['port'] = {
  post: (message, transfer = []) => postMessage(message, { transfer: [...transfer] }),
  onMessage(handler) {
    for (const message of early.splice(0)) handler(message)
    receive = handler
  },
  onFailure: () => undefined,
  close: () => {
    receive = () => undefined
  }
}

const open: LearnerThread['open'] = async () => {
  throw new PlatformError('a peer in a browser opens no streams: give it the rows')
}

const readText: LearnerThread['readText'] = async () => {
  throw new PlatformError('a peer in a browser reads no texts: start a peer of this network with Node.js')
}

const encode: LearnerThread['encode'] = async () => {
  throw new PlatformError('a peer in a browser makes no files: download the model from a peer with an HTTP interface')
}

addEventListener(
  'message',
  ({ data }: MessageEvent<ThreadInit>) => {
    addEventListener('message', ({ data }: MessageEvent<ToLearner>) => receive(data))
    void runLearner({ init: data, port, open, readText, encode })
  },
  { once: true }
)

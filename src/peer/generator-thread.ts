/** Entry of the thread that continues texts with a peer's predictor, so that learning does not wait for it. */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import {
  createTokenizer,
  deviceFor,
  Generation,
  networkModel,
  TextReader,
  wholeBlocks,
  wholeNetwork
} from '../l2l/index.js'
import type { Blocks } from '../learner/index.js'
import { loadPlugins } from '../task/plugins.js'
import type { FromGenerator, GenerateRequest, GeneratorInit, ToGenerator } from './generator.js'

const port = parentPort as MessagePort
const { network, execution, plugins } = workerData as GeneratorInit
const cancelled = new Set<number>()
let weights: { readonly blocks: Blocks; readonly updates: number } | undefined

function post(message: FromGenerator): void {
  port.postMessage(message)
}

async function generate(id: number, { prompt, tokens = 100, ...sampling }: GenerateRequest): Promise<void> {
  if (network.text === undefined || weights === undefined) throw new Error('there is no text')
  const tokenizer = createTokenizer(network.text)
  const encoded = tokenizer.encode(prompt)
  const generation = new Generation(networkModel(wholeNetwork(network)), weights.blocks, weights.updates)
  const reader = new TextReader(tokenizer, encoded)
  let made = 0
  try {
    for (const token of generation.tokens(encoded, tokens, sampling)) {
      if (cancelled.delete(id)) break
      made++
      post({ kind: 'piece', id, piece: { token, text: reader.next(token) } })
      // Messages arrive between tokens.
      await yieldToEventLoop()
    }
  } finally {
    generation.close()
  }
  post({
    kind: 'ended',
    id,
    end: { text: reader.text, tokens: made, finish: made === tokens ? 'tokens' : 'positions' }
  })
}

await loadPlugins(plugins)
await deviceFor(execution)
let last: Promise<void> = Promise.resolve()
port.on('message', (message: ToGenerator) => {
  if (message.kind === 'cancel') {
    cancelled.add(message.id)
    return
  }
  const { id, request, blocks, updates } = message
  last = last.then(async () => {
    try {
      if (blocks !== undefined) weights = { blocks: wholeBlocks(network, blocks, execution.checkpoint), updates }
      await generate(id, request)
    } catch (error) {
      post({ kind: 'failed', id, reason: (error as Error).message })
    } finally {
      cancelled.delete(id)
    }
  })
})

/** Predictors outside of the tree. */
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { PredictorId } from '../../../src/admb/index.js'
import { PredictorExchange } from '../../../src/peer/predictor-exchange.js'
import { PART_BYTES, PartServer } from '../../../src/peer/predictor-parts.js'
import type { ToLearner } from '../../../src/peer/thread-messages.js'
import type { Store } from '../../../src/storage/index.js'

type Options = ConstructorParameters<typeof PredictorExchange>[0]

const held: PredictorId = { updates: 5, origin: 'a', incarnation: 1, nonce: 0, digest: '00' }
const better: PredictorId = { ...held, updates: 7, origin: 'b' }

describe('predictors outside of the tree', () => {
  let posted: ToLearner['kind'][]
  let fetched: string[]
  const statuses = new EventEmitter()

  beforeEach(() => {
    posted = []
    fetched = []
  })

  function exchangeOf(): PredictorExchange {
    const network = {
      peers: [],
      maxFrameBytes: 1 << 20,
      fetch: async ({ id }: { readonly id: string }) => {
        fetched.push(id)
        return Uint8Array.of(9)
      }
    }
    const edges = { arrived: async () => undefined, neighbours: ['c'] }
    return new PredictorExchange({
      network: network as unknown as Options['network'],
      edges: edges as unknown as Options['edges'],
      learner: { post: ({ kind }) => void posted.push(kind), parts: async () => undefined },
      store: undefined,
      durable: async () => undefined,
      save: async () => Uint8Array.of(1, 2),
      current: () => held,
      statuses,
      log: () => undefined
    })
  }

  async function fetchBy(exchange: PredictorExchange): Promise<void> {
    const ended = exchange.fetch(better, 'b', false)
    await new Promise(setImmediate)
    statuses.emit('status')
    await ended
  }

  const answerOf = (exchange: PredictorExchange, text: string) => exchange.answer(new TextEncoder().encode(text))

  /** Downloads a predictor that only `b` has, in three parts. */
  function downloading(keepPart: () => Promise<void>) {
    const id = { ...better, digest: '0123456789abcdef'.repeat(2) }
    const blocks = [new Uint8Array(2 * PART_BYTES + 1)]
    const server = new PartServer({
      ended: () => undefined,
      encode: async (_, served) => (served ? 'held' : { id, head: Uint8Array.of(1), blocks })
    })
    const names: unknown[] = []
    const network = {
      id: 'a',
      peers: [],
      maxFrameBytes: 1 << 24,
      fetch: async (target: { readonly id: string }, request: Uint8Array, signal: AbortSignal) => {
        signal.throwIfAborted()
        const answer = target.id === 'b' && (await server.answer(new TextDecoder().decode(request)))
        if (!answer) throw new Error('nothing found')
        return answer
      }
    }
    const exchange = new PredictorExchange({
      network: network as unknown as Options['network'],
      edges: { neighbours: ['c', 'b'] } as unknown as Options['edges'],
      learner: { post: message => void names.push('from' in message && message.from), parts: async () => undefined },
      store: { keptPart: async () => undefined, keepPart, dropParts: async () => undefined } as unknown as Store,
      durable: async () => undefined,
      save: async () => Uint8Array.of(1),
      current: () => held,
      statuses,
      log: () => undefined
    })
    return { exchange, names, stop: () => server.stop(), ended: exchange.download(id, 'c') }
  }

  it('are attributed to the peer from which the head was downloaded', async () => {
    const { names, stop, ended } = downloading(async () => undefined)
    assert.equal(await ended, true)
    stop()
    assert.deepEqual(names, ['b'])
  })

  it('are not written any more when the exchange has stopped', async () => {
    let writes = 0
    const { exchange, stop } = downloading(async () => {
      writes++
      await new Promise(resolve => setTimeout(resolve, 50))
      writes--
    })
    while (writes === 0) await new Promise(setImmediate)
    await exchange.stop()
    stop()
    assert.equal(writes, 0)
  })

  it('are fetched from a tree neighbour first, and given if they are new enough', async () => {
    const exchange = exchangeOf()
    await fetchBy(exchange)
    assert.deepEqual([fetched, posted], [['c'], ['fetched', 'fetch-ended']])
    assert.deepEqual(await answerOf(exchange, 'predictor 5'), Uint8Array.of(1, 2))
    assert.equal(await answerOf(exchange, 'predictor 6'), undefined)
    assert.equal(await answerOf(exchange, 'contacts'), undefined)
  })
})

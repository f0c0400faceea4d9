/** Predictors outside of the tree. */
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { PredictorId } from '../../../src/admb/index.js'
import { PredictorExchange } from '../../../src/peer/predictor-exchange.js'
import type { ToLearner } from '../../../src/peer/thread-messages.js'

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

  it('are fetched from a tree neighbour first, and given if they are new enough', async () => {
    const exchange = exchangeOf()
    await fetchBy(exchange)
    assert.deepEqual([fetched, posted], [['c'], ['fetched', 'fetch-ended']])
    assert.deepEqual(await answerOf(exchange, 'predictor 5'), Uint8Array.of(1, 2))
    assert.equal(await answerOf(exchange, 'predictor 6'), undefined)
    assert.equal(await answerOf(exchange, 'contacts'), undefined)
  })
})

/** Texts over HTTP, from a peer with a language model. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseTokenizer } from '../../../src/nn/tokenizers/index.js'
import { openCheckpoint } from '../../../src/nn/weights/checkpoint.js'
import { createPeerTask } from '../../../src/task/task.js'
import { PeerServer } from '../../support/http-server.js'
import { referenceOf } from '../../support/l2l/checkpoints.js'
import { OpenApiContract } from '../../support/openapi.js'

interface Event {
  readonly event: string
  readonly data: { readonly [key: string]: unknown }
}

describe('POST /generate', function () {
  this.timeout(60_000)
  const gpt2 = referenceOf('gpt2')
  const tokenizer = parseTokenizer(openCheckpoint(gpt2.folder).tokenizer as string, 'gpt2')
  const prompt = tokenizer.decode(gpt2.rows[0].slice(0, 4))
  let dir: string
  let served: PeerServer
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'admb-generate-'))
    const data = join(dir, 'book.txt')
    await writeFile(data, gpt2.text as string)
    // Adapters that are not trained change nothing.
    const task = { checkpoint: gpt2.folder, lora: { rank: 2 }, data, length: 16 }
    const { spec } = await createPeerTask(task)
    served = await PeerServer.start({}, { spec, execution: { backend: 'cpu', checkpoint: gpt2.folder } })
  })
  after(async () => {
    await served.stop()
    await rm(dir, { recursive: true, force: true })
  })

  async function eventsOf(answer: Response): Promise<Event[]> {
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('content-type'), 'text/event-stream; charset=utf-8')
    const blocks = (await answer.text()).trimEnd().split('\n\n')
    return blocks.map(block => {
      const [, event, data] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? []
      return { event, data: JSON.parse(data) }
    })
  }
  const generate = (body: object) => served.post('/generate', JSON.stringify(body))

  it('sends the tokens of transformers, their text, and the whole at the end', async () => {
    const answer = await generate({ prompt, tokens: 12, temperature: 0 })
    const events = await eventsOf(answer)
    const end = events.at(-1) as Event
    const pieces = events.slice(0, -1)
    assert.ok(pieces.every(({ event }) => event === 'piece'))
    assert.deepEqual(
      pieces.map(({ data }) => data.token),
      gpt2.greedy?.slice(4)
    )
    const { predictor, text, ...rest } = end.data
    assert.deepEqual(rest, { tokens: 12, finish: 'tokens' })
    // The last character may be incomplete.
    assert.equal((text as string).replace(/\ufffd$/, ''), pieces.map(({ data }) => data.text).join(''))
    assert.equal((predictor as { updates: number }).updates, served.peer.status().predictor.updates)
  })

  it('draws by the seed, and ends at the last position of the model', async () => {
    const [first, again, other] = await Promise.all(
      [1, 1, 2].map(async seed => eventsOf(await generate({ prompt, tokens: 200, topK: 40, topP: 0.9, seed })))
    )
    assert.deepEqual(first, again)
    assert.notDeepEqual(first, other)
    assert.equal(first.at(-1)?.data.finish, 'positions')
    // Of 24 positions, the prompt has four; the last one makes a token as well.
    assert.equal(first.at(-1)?.data.tokens, 21)
  })

  it('stops when the client leaves, and serves the next one', async () => {
    const left = new AbortController()
    const body = JSON.stringify({ prompt, tokens: 20 })
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${served.url}/generate`, { method: 'POST', body, headers, signal: left.signal })
    left.abort()
    await assert.rejects(answer.text())
    assert.equal((await eventsOf(await generate({ prompt, tokens: 1 }))).length, 2)
  })

  it('refuses what it cannot continue, in JSON', async () => {
    const contract = await OpenApiContract.of(served.url)
    const refuses = async (body: object, error: RegExp, at = served) => {
      const answer = await at.post('/generate', JSON.stringify(body))
      assert.equal(answer.status, 400)
      const failure = (await contract.check('post', '/generate', answer)) as { error: string; code: string }
      assert.match(failure.error, error)
      assert.equal(failure.code, 'ERR_REQUEST')
    }
    await refuses({ prompt: '' }, /body\/prompt must NOT have fewer than 1 characters/)
    await refuses({ prompt, tokens: 1e6 }, /body\/tokens must be <= 4096/)
    await refuses({ tokens: 3 }, /body must have required property 'prompt'/)
    await refuses(
      { prompt: 'the river '.repeat(20) },
      /^the prompt has \d+ tokens, and the model 24 positions: shorten it/
    )
    const linear = await PeerServer.start()
    try {
      await refuses({ prompt }, /^the model logistic does not generate text: start peers with a language model/, linear)
    } finally {
      await linear.stop()
    }
  })
})

/** A peer in a program: learning, predicting, events, stopping. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type CreatePeerOptions, createPeer, type LearningPeer } from '../../../src/library/create-peer.js'
import { until } from '../../support/peer-processes.js'

const TASK: CreatePeerOptions = { features: 2, classNames: ['no', 'yes'], batch: 4, listen: [] }
const LOOPBACK = ['/ip4/127.0.0.1/tcp/0']

const MODELS = { 'a convex model': undefined, 'a network': { model: 'mlp', hidden: [6] } }

for (const [name, model] of Object.entries(MODELS))
  describe(`createPeer with ${name}`, function () {
    this.timeout(60_000)
    const peers: LearningPeer[] = []
    const create = async (options: Partial<CreatePeerOptions> = {}) => {
      const peer = await createPeer({ ...TASK, ...(options.model === undefined && model ? { model } : {}), ...options })
      peers.push(peer)
      return peer
    }
    afterEach(async () => {
      await Promise.all(peers.splice(0).map(peer => peer.stop()))
    })

    it('returns the predictions from before learning', async () => {
      const peer = await create()
      const before = await peer.predict([1, 0])
      assert.deepEqual(await peer.learn([1, 0], 'yes'), before)
      for (let i = 0; i < 20; i++) await peer.learnAll([[1, 0], { 1: 1 }], ['yes', 'no'])
      const answers = await peer.predictAll([[1, 0], Float32Array.of(0, 1)])
      assert.deepEqual(
        answers.map(({ label }) => label),
        ['yes', 'no']
      )
      assert.deepEqual(await peer.learnAll([], []), [])
      await until('its status has come', () => peer.status().inputs === 41)
    })

    it('emits updates, neighbours and adoptions', async () => {
      const a = await create({ listen: LOOPBACK })
      const b = await create({ peers: a.addresses })
      const events: string[] = []
      b.addEventListener('neighbour', ({ detail }) =>
        events.push(`${detail.isLinked ? 'linked' : 'left'} ${detail.peer}`)
      )
      b.addEventListener('adopted', ({ detail }) => events.push(detail.adopted > 0 ? 'adopted' : 'not adopted'))
      const onUpdate = () => events.push('update')
      b.addEventListener('update', onUpdate)
      await until('they are linked', () => b.status().neighbours.includes(a.id))
      assert.ok(events.includes(`linked ${a.id}`) || b.status().neighbours.length === 1)
      await a.learnAll(Array(40).fill([1, 0]), Array(40).fill('yes'))
      await until('b has adopted', () => events.includes('adopted') && events.includes('update'))
      assert.equal((await b.predict([1, 0])).label, 'yes')
      b.removeEventListener('update', onUpdate)
      await a.stop()
      await until('b knows that a has left', () => events.includes(`left ${a.id}`))
    })

    it('exchanges gradients with a peer whose period adapts', async () => {
      const a = await create({ listen: LOOPBACK, period: 'auto' })
      const b = await create({ peers: a.addresses })
      await until('they are linked', () => a.status().neighbours.includes(b.id))
      const before = a.status().updates
      // Each has half of a batch.
      for (const peer of [a, b]) await peer.learnAll([[1, 0], { 1: 1 }], ['yes', 'no'])
      // Both may make the update from the same gradients, and then adopt that of one of them.
      await until('both have it', () => {
        const [first, second] = [a, b].map(peer => peer.status().predictor)
        return first.updates === before + 1 && isDeepStrictEqual(first, second)
      })
    })

    if (name === 'a network')
      it('agrees on a rule for each layer, and refuses a peer with another', async () => {
        const output = (step: number): CreatePeerOptions['rule'] => ({
          name: 'layers',
          rules: [
            { layers: 'output', rule: { name: 'momentum', step } },
            { layers: 'dense', rule: { name: 'adam', step: 0.02 } }
          ]
        })
        const a = await create({ listen: LOOPBACK, rule: output(0.1) })
        const b = await create({ peers: a.addresses, rule: output(0.1) })
        await until('they are linked', () => a.status().neighbours.includes(b.id))
        await Promise.all([a, b].map(peer => peer.learnAll(Array(40).fill([1, 0]), Array(40).fill('yes'))))
        await until('both have the last update', () => {
          const [first, second] = [a, b].map(peer => peer.status().predictor)
          return first.updates > 10 && isDeepStrictEqual(first, second)
        })
        const warnings: string[] = []
        const log = (_level: string, message: string) => warnings.push(message)
        const c = await create({ peers: a.addresses, rule: output(0.2), log })
        await until('the refusal', () => warnings.some(text => text.includes('output:momentum(step=0.1')))
        assert.deepEqual(c.status().neighbours, [])
      })

    it('rejects inputs that do not fit, and continues', async () => {
      const peer = await create()
      const wrong: [unknown[], unknown[], RegExp][] = [
        [[[1]], ['yes'], /an array of 1 features, expected 2/],
        [[[1, Number.NaN]], ['yes'], /feature 1 of input 0 is NaN/],
        [[[1, 2]], ['maybe'], /label "maybe" is not among/],
        [[[1, 2]], [], /1 inputs came with 0 labels/],
        [[3], ['yes'], /input 0 is 3: give an array/],
        [[{ colour: 1 }], ['yes'], /"colour" is not a feature number/]
      ]
      for (const [inputs, labels, message] of wrong) {
        await assert.rejects(peer.learnAll(inputs as [], labels as []), (error: Error & { code: string }) => {
          assert.equal(error.code, 'ERR_REQUEST')
          assert.match(error.message, message)
          return true
        })
      }
      await peer.learn([1, 2], 'yes')
    })

    it('resumes from its directory', async () => {
      const dir = mkdtempSync(join(tmpdir(), 'admb-library-'))
      try {
        const first = await createPeer({ ...TASK, dir })
        await first.learnAll(Array(40).fill([1, 0]), Array(40).fill('yes'))
        const before = await first.predict([1, 0])
        await first.stop()
        const second = await createPeer({ ...TASK, dir })
        assert.deepEqual(await second.predict([1, 0]), before)
        assert.equal(second.id, first.id)
        await second.stop()
      } finally {
        rmSync(dir, { recursive: true })
      }
    })

    it('serves HTTP if enabled, and rejects calls once stopped', async () => {
      const peer = await create({ http: { port: 0 } })
      assert.equal((await fetch(`${peer.url}/healthz`)).status, 200)
      await peer.stop()
      await assert.rejects(fetch(`${peer.url}/healthz`))
      await assert.rejects(peer.predict([0, 0]), { code: 'ERR_UNAVAILABLE' })
      await assert.rejects(createPeer({ ...TASK, http: { port: 0, host: '0.0.0.0' } }), {
        code: 'ERR_HTTP_TOKEN_REQUIRED'
      })
    })

    it('reports that its stream failed', async () => {
      const data = { data: join(tmpdir(), 'admb-no-such-file.csv') }
      await assert.rejects(create({ data }), /admb-no-such-file/)
    })
  })

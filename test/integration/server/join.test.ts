/** The data of the join page, and who may connect on the port of HTTP. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { createPeer, type LearningPeer } from '../../../src/index.js'
import type { JoinOffer } from '../../../src/peer/join-offer.js'

describe('a server with the join page', () => {
  let peer: LearningPeer
  before(async () => {
    peer = await createPeer({
      features: 2,
      classNames: ['no', 'yes'],
      listen: ['/ip4/127.0.0.1/tcp/0'],
      stun: ['stun:stun.example.org:3478'],
      http: { port: 0, token: 'a token of more than 16 characters', joinPage: true }
    })
  })
  after(() => peer.stop())

  const get = (path: string) => fetch(`${peer.url}${path}`)
  /** Status of the answer to a request to upgrade; 0 if the connection was closed. */
  const upgrade = (headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const asked = request(`${peer.url}/`, {
        headers: {
          connection: 'Upgrade',
          upgrade: 'websocket',
          'sec-websocket-version': '13',
          'sec-websocket-key': Buffer.alloc(16).toString('base64'),
          ...headers
        }
      })
      asked.on('upgrade', ({ statusCode }, socket) => {
        socket.destroy()
        resolve(statusCode ?? 0)
      })
      asked.on('response', ({ statusCode }) => resolve(statusCode ?? 0))
      asked.on('error', error => ((error as NodeJS.ErrnoException).code === 'ECONNRESET' ? resolve(0) : reject(error)))
      asked.end()
    })

  it('shows the offer to everyone, and nothing else', async () => {
    assert.equal((await get('/status')).status, 401)
    const offer = (await (await get('/join.json')).json()) as JoinOffer
    assert.equal(offer.id, peer.id)
    assert.deepEqual(offer.stun, ['stun:stun.example.org:3478'])
    const { port } = new URL(peer.url as string)
    assert.ok(offer.addresses.includes(`/ip4/127.0.0.1/tcp/${port}/ws/p2p/${peer.id}`))
    const page = await get('/join')
    assert.equal(page.status, 200)
    assert.match(page.headers.get('content-security-policy') ?? '', /script-src 'self' 'wasm-unsafe-eval'/)
  })

  it('accepts WebSockets of this machine, but not of pages of other hosts', async () => {
    assert.equal(await upgrade({}), 101)
    assert.equal(await upgrade({ origin: peer.url as string }), 101)
    assert.equal(await upgrade({ origin: 'https://example.org' }), 0)
    assert.equal(await upgrade({ origin: 'null' }), 0)
    assert.equal(await upgrade({ host: 'example.org' }), 0)
  })

  it('connects peers on the port of HTTP', async () => {
    const address = peer.addresses.find(one => one.includes('/ws/')) as string
    const other = await createPeer({ features: 2, classNames: ['no', 'yes'], listen: [], peers: [address] })
    try {
      if (other.status().neighbours.length === 0)
        await new Promise<void>(resolve => other.addEventListener('neighbour', () => resolve(), { once: true }))
      assert.deepEqual(other.status().neighbours, [peer.id])
    } finally {
      await other.stop()
    }
  })

  it('has no join page unless it is asked for', async () => {
    const plain = await createPeer({ features: 2, classNames: ['no', 'yes'], listen: [], http: { port: 0 } })
    try {
      for (const path of ['/join', '/join.json', '/digits'])
        assert.equal((await fetch(`${plain.url}${path}`)).status, 404, path)
    } finally {
      await plain.stop()
    }
  })
})

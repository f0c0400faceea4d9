/** The routes for the whole network: the table, the stream of events, and the page. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { EventParser, NetworkState, type ServerEvent } from '../../../src/page/network-state.js'
import { EventStream } from '../../../src/server/routes/network.js'
import { NetworkView, type PeerRow } from '../../../src/view/index.js'
import { PeerServer } from '../../support/http-server.js'
import { OpenApiContract } from '../../support/openapi.js'
import { until } from '../../support/peer-processes.js'
import { A, PEERS, status } from '../../support/statuses.js'

const LISTEN = { listen: ['/ip4/127.0.0.1/tcp/0'] }

/** Reads the event stream like the page. */
class Watcher {
  readonly state = new NetworkState()
  readonly seen: ServerEvent[] = []
  readonly headers: Promise<Headers>
  ended = false
  readonly #abort = new AbortController()

  constructor(url: string, headers: Record<string, string> = {}) {
    const answer = fetch(`${url}/events`, { headers, signal: this.#abort.signal })
    this.headers = answer.then(response => response.headers)
    void answer
      .then(async response => {
        const parser = new EventParser()
        const text = response.body?.pipeThrough(new TextDecoderStream()) ?? []
        for await (const part of text) for (const event of parser.push(part)) this.#take(event)
      })
      .catch(() => undefined)
      .finally(() => {
        this.ended = true
      })
  }

  names(): (string | undefined)[] {
    return this.state.rows.filter(row => row.alive).map(({ name }) => name)
  }

  stop(): void {
    this.#abort.abort()
  }

  #take(event: ServerEvent): void {
    this.seen.push(event)
    if (event.event === 'snapshot') this.state.reset(JSON.parse(event.data))
    else this.state.apply(JSON.parse(event.data))
  }
}

describe('the network over HTTP', function () {
  this.timeout(60_000)
  const started: { stop(): unknown }[] = []
  async function start(...options: Parameters<typeof PeerServer.start>): Promise<PeerServer> {
    const served = await PeerServer.start(...options)
    started.push(served)
    return served
  }
  afterEach(async () => {
    for (const one of started.splice(0).reverse()) await one.stop()
  })

  it('shows at each peer the other peers, those that leave, and those that are refused', async () => {
    const one = await start({}, { ...LISTEN, name: 'one' })
    const watcher = new Watcher(one.url)
    started.push(watcher)
    const peers = [...one.peer.addresses]
    const two = await start({}, { ...LISTEN, name: 'two', peers })
    await until('the first peer knows both', () => watcher.names().length === 2)
    assert.deepEqual(watcher.names(), ['one', 'two'])
    await until('they are linked', () => watcher.state.rows.every(row => row.neighbours.length === 1))
    const contract = await OpenApiContract.of(two.url)
    const table = (await contract.check('get', '/peers', await fetch(`${two.url}/peers`))) as { peers: PeerRow[] }
    assert.deepEqual(table.peers.map(({ id }) => id).sort(), [one.peer.id, two.peer.id].sort())
    const peersOf = async (query: string) => {
      const answer = await contract.check('get', '/peers', await fetch(`${two.url}/peers?${query}`))
      return (answer as { peers: (PeerRow & { path?: string[] })[] }).peers
    }
    const [found] = await peersOf('search=ONE')
    assert.deepEqual([found.name, found.path], ['one', [one.peer.id]])
    const [behind] = await peersOf(`path=${one.peer.id}`)
    assert.deepEqual([behind.name, behind.below], ['one', 1])
    for (const [query, status] of [
      ['path=a', 404],
      ['path=../x', 400],
      ['search=', 400],
      ['serach=a', 400]
    ] as const)
      assert.equal((await fetch(`${two.url}/peers?${query}`)).status, status)

    const spec = { ...(await import('../../support/http-server.js')).SPEC, batch: 64 }
    const other = await start({}, { ...LISTEN, name: 'other', spec, peers })
    const kinds = () => watcher.state.events.map(({ kind }) => kind)
    await until('the third is refused', () => kinds().includes('refused'))
    const refusal = watcher.state.events.find(({ kind }) => kind === 'refused')
    assert.match(refusal?.detail ?? '', /batch 64/)
    assert.deepEqual(refusal?.peers, [other.peer.id])

    await two.stop()
    await until('the second has left', () => kinds().includes('left') || kinds().includes('lost'))
    assert.equal(watcher.seen[0].event, 'snapshot')
    assert.ok(watcher.seen.slice(1).every(({ event }) => event === 'update'))
  })

  it('ends the streams when the peer stops', async () => {
    const served = await start()
    const watcher = new Watcher(served.url)
    await until('the snapshot', () => watcher.seen.length > 0)
    await served.server.close()
    await until('the stream has ended', () => watcher.ended)
  })

  it('limits the number of event streams', async () => {
    const served = await start()
    const watchers = Array.from({ length: 64 }, () => new Watcher(served.url))
    started.push(...watchers)
    await until('all have a snapshot', () => watchers.every(({ seen }) => seen.length > 0))
    const refused = await fetch(`${served.url}/events`)
    assert.equal(refused.status, 503)
    assert.equal(((await refused.json()) as { code: string }).code, 'ERR_TOO_MANY_READERS')
    watchers[0].stop()
    await until('a free event stream', async () => {
      const answer = await fetch(`${served.url}/events`)
      await answer.body?.cancel()
      return answer.status === 200
    })
  })

  it('queues nothing for a slow reader, which receives the complete state in the end', async () => {
    const view = new NetworkView()
    for (const id of PEERS) view.receive(id, status(), 1000)
    const server = createServer((_request, response) => new EventStream(response, view))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    started.push({ stop: () => server.close() })
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    started.push({ stop: () => socket.destroy() })
    let queued = 0
    server.once('request', (_request, response) => {
      const timer = setInterval(() => {
        queued = Math.max(queued, response.writableLength)
      }, 1)
      response.on('close', () => clearInterval(timer))
    })
    socket.write('GET /events HTTP/1.1\r\nhost: x\r\n\r\n')
    socket.pause()
    for (let second = 0; second < 3000; second++) {
      for (const id of PEERS) view.receive(id, status({ uptime: 2 + second, inputs: second }), 1000 + second)
      view.tick(1000 + second)
      if (second % 20 === 0) await new Promise(resolve => setImmediate(resolve))
    }
    await new Promise(resolve => setTimeout(resolve, 20))
    assert.ok(queued < 200_000, `${queued} bytes wait`)
    const state = new NetworkState()
    const parser = new EventParser()
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => {
      // Skips the lengths of the chunked encoding, which are on separate lines without a field name.
      for (const { event, data } of parser.push(text.replace(/\r\n[0-9a-f]+\r\n/g, ''))) {
        if (event === 'snapshot') state.reset(JSON.parse(data))
      }
    })
    socket.resume()
    await until('the reader has the last update', () => state.peers.get(A)?.inputs === 2999)
  })

  it('sends a large snapshot once', async () => {
    const view = new NetworkView()
    const neighbours = Array(20).fill('x'.repeat(50))
    for (let peer = 1; peer < 60; peer++) view.receive(`peer${peer}`, status({ neighbours }), 1000)
    const server = createServer((_request, response) => new EventStream(response, view))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    started.push({ stop: () => server.closeAllConnections() })
    const watcher = new Watcher(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    started.push(watcher, { stop: () => server.close() })
    await until('the snapshot', () => watcher.seen.length > 0)
    for (let second = 1; second <= 20; second++) {
      view.receive('peer1', status({ uptime: 1 + second }), 1000 * second)
      view.tick(1000 * second)
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    await until('the updates', () => watcher.state.peers.get('peer1')?.uptime === 21)
    assert.equal(watcher.seen.filter(({ event }) => event === 'snapshot').length, 1)
  })

  it('serves pages without the token that their data need, which cannot load content from other origins', async function () {
    if (!existsSync('dist/page/index.html')) {
      console.log('      skipped: the page is not built (npm run build)')
      this.skip()
    }
    const token = 'a token of some length'
    const served = await start({ token })
    for (const path of ['/', '/simulator']) {
      const page = await fetch(`${served.url}${path}`)
      assert.equal(page.status, 200)
      assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'; script-src 'self';/)
      assert.equal(page.headers.get('x-content-type-options'), 'nosniff')
      const text = await page.text()
      const links = [...text.matchAll(/<(?:script|link)[^>]* (?:src|href)="([^"#]+)"/g)].map(match => match[1])
      assert.ok(links.length >= 3)
      for (const link of links) {
        assert.match(link, /^\.\/assets\//)
        const asset = await fetch(new URL(link, `${served.url}${path}`))
        assert.equal(asset.status, 200)
        assert.match(asset.headers.get('cache-control') ?? '', /immutable/)
      }
    }
    assert.equal((await fetch(`${served.url}/events`)).status, 401)
    assert.equal((await fetch(`${served.url}/peers`)).status, 401)
    const watcher = new Watcher(served.url, { authorization: `Bearer ${token}` })
    started.push(watcher)
    await until('the token opens the stream', () => watcher.seen.length > 0)
    assert.equal((await watcher.headers).get('content-type'), 'text/event-stream; charset=utf-8')
  })
})

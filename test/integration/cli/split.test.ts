/** `admb split` with peers in this process, and with servers that fail in other ways than peers that crash. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { AHEAD } from '../../../src/cli/split/dealer.js'
import { admb, admbJson, admbProcess } from '../../support/admb-command.js'
import { PeerServer, SPEC } from '../../support/http-server.js'
import { until } from '../../support/peer-processes.js'

const ROWS = 2000
const rows = (count: number) =>
  Array.from({ length: count }, (_, i) => `${i % 2 ? 'yes' : 'no'} ${1 + (i % 4)}:1\n`).join('')

/** A server in place of a peer. `GET /schema` succeeds. */
async function serve(learn: (request: IncomingMessage, answer: ServerResponse) => void): Promise<[Server, string]> {
  const server = createServer((request, answer) => {
    if (request.url === '/schema') answer.end('{}')
    else learn(request, answer)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return [server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`]
}

const failure = (code: string) => JSON.stringify({ error: 'it fails', code })

describe('admb split', function () {
  this.timeout(60_000)
  let dir = ''
  let peers: PeerServer[] = []
  let servers: Server[] = []
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'admb-test-'))
    peers = []
    servers = []
  })
  afterEach(async () => {
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
    for (const peer of peers) await peer.stop()
    await rm(dir, { recursive: true })
  })

  const start = async (...options: Parameters<typeof PeerServer.start>) => {
    const peer = await PeerServer.start(...options)
    peers.push(peer)
    return peer
  }
  const serving = async (learn: Parameters<typeof serve>[0]) => {
    const [server, url] = await serve(learn)
    servers.push(server)
    return url
  }
  const file = async (name: string, content: string) => {
    const path = join(dir, name)
    await writeFile(path, content)
    return path
  }
  const learnedBy = async (peer: PeerServer, inputs: number) => {
    await until(`${inputs} inputs`, () => peer.peer.status().inputs >= inputs)
    return peer.peer.status().inputs
  }

  it('deals a file to peers, and with a state only what is new', async () => {
    const [a, b] = [await start(), await start()]
    const data = await file('rows.svm', rows(ROWS))
    const state = join(dir, 'state')
    const args = ['split', '--data', data, '--to', a.url, '--to', b.url.slice('http://'.length), '--state', state]
    const first = await admbJson(args)
    assert.deepEqual([first.rows, first.skipped, first.inDoubt, first.unsent], [ROWS, 0, 0, 0])
    const shares = first.peers.map((peer: { rows: number }) => peer.rows)
    assert.equal((await learnedBy(a, shares[0])) + (await learnedBy(b, shares[1])), ROWS)
    assert.ok(Math.min(...shares) > 0, `${shares}`)
    await writeFile(data, rows(ROWS + 10))
    assert.equal((await admbJson(args)).rows, 10)
    const { stdout } = await admb(args)
    assert.match(stdout, /0 rows learned by 2 peers/)
    await writeFile(data, `yes 1:1\n${rows(ROWS)}`)
    assert.match((await admb(args)).stderr, /content differs.*ERR_SPLIT_STATE/)
    assert.match(
      (await admb([...args, '--data', await file('other.svm', rows(1))])).stderr,
      /given twice|ERR_SPLIT_STATE/
    )
  })

  it('passes CSV on from standard input, with the columns of the peer', async () => {
    const columns = [{ name: 'a' }, { name: 'b' }].map(({ name }) => ({ name, kind: 'number' }) as const)
    const features = { ...SPEC.features, label: 'label', columns }
    const peer = await start({}, { spec: { ...SPEC, dimension: 2, features } })
    const input = `b;"label";a\n${Array.from({ length: 600 }, (_, i) => `${i};"${i % 2 ? 'yes' : 'no'}";1,5\n`).join('')}`
    const args = ['split', '--data', '-', '--format', 'csv', '--to', peer.url]
    const { stdout, stderr, code } = await admbProcess([...args, '--json'], { input })
    assert.equal(code, 0, stderr)
    assert.equal(JSON.parse(stdout).rows, 600)
    assert.match((await admbProcess([...args, '--state', join(dir, 's')], { input })).stderr, /no positions.*ERR_USAGE/)
  })

  it('skips the rows that no peer can learn, and fails if there are too many', async () => {
    const peer = await start()
    const lines = rows(ROWS).split('\n')
    lines[700] = 'perhaps 1:1'
    lines[701] = 'yes 1:one'
    const data = await file('a.svm', lines.join('\n'))
    const { stdout, stderr: said } = await admb(['split', '--data', data, '--to', peer.url, '--json'])
    const { rows: learned, skipped } = JSON.parse(stdout)
    assert.match(said, /a\.svm: label "perhaps" .* in the row "perhaps 1:1"\n/)
    assert.match(said, /a\.svm: the value is .* in the row "yes 1:one"\n/)
    assert.deepEqual([learned, skipped], [ROWS - 2, 2])
    assert.equal(await learnedBy(peer, ROWS - 2), ROWS - 2)
    const bad = await file('b.svm', rows(ROWS).replaceAll('yes', 'perhaps'))
    const { code, stderr } = await admb(['split', '--data', bad, '--to', peer.url])
    assert.equal(code, 1)
    assert.match(stderr, /perhaps.*ERR_SKIPPED_INPUTS/)
    // It does not try all rows.
    assert.ok(peer.peer.status().inputs < ROWS + 200)
  })

  it('gives what a peer refuses to the others, and few blocks to one that is slow', async () => {
    const peer = await start()
    const held: ServerResponse[] = []
    let most = 0
    const slow = await serving((request, answer) => {
      held.push(answer)
      most = Math.max(most, held.length)
      // It answers when the peer has learned all the others.
      void text(request).then(() =>
        until('the others', () => peer.peer.status().inputs > 1000).then(() => held.splice(0).map(one => one.end('{}')))
      )
    })
    const busy = await serving((_request, answer) => {
      answer.statusCode = 503
      answer.end(failure('ERR_UNAVAILABLE'))
    })
    const spent = await serving((_request, answer) => {
      answer.statusCode = 400
      answer.end(failure('ERR_PRIVACY_SPENT'))
    })
    const closed = 'http://127.0.0.1:1'
    const to = [peer.url, slow, busy, closed, spent].flatMap(url => ['--to', url])
    const { stdout, stderr, code } = await admb(['split', '--data', await file('a.svm', rows(4000)), ...to, '--json'])
    assert.equal(code, 0, stderr)
    const { rows: learned, peers: counts } = JSON.parse(stdout.trim().split('\n').at(-1) as string)
    assert.equal(learned, 4000)
    const blocks = counts.map((one: { blocks: number }) => one.blocks)
    assert.deepEqual([...blocks.slice(2), most <= AHEAD], [0, 0, 0, true], `${blocks}`)
    assert.match(stderr, /no peer at http:\/\/127.0.0.1:1/)
  })

  it('sends a block in doubt to the same peer again, with the same key, before any other', async () => {
    const peer = await start()
    const keys: string[] = []
    const bodies = new Map<string, string>()
    const doubtful = await serving((request, answer) => {
      const key = request.headers['idempotency-key'] as string
      keys.push(key)
      void text(request).then(body => {
        assert.equal(bodies.get(key) ?? body, body)
        const isFirst = !bodies.has(key)
        bodies.set(key, body)
        if (!isFirst) answer.end('{}')
        else if (bodies.size % 2 === 0) request.socket.destroy()
        else {
          answer.statusCode = 500
          answer.end(failure('ERR_INTERNAL'))
        }
      })
    })
    const data = await file('a.svm', rows(3000))
    const { stdout, stderr, code } = await admb(['split', '--data', data, '--to', doubtful, '--to', peer.url, '--json'])
    assert.equal(code, 0, stderr)
    const { rows: learned, peers: counts } = JSON.parse(stdout.trim().split('\n').at(-1) as string)
    const received = [...bodies.values()].join('').split('\n').length - 1
    assert.deepEqual([learned, counts[0].rows], [3000, received])
    assert.equal(await learnedBy(peer, 3000 - received), 3000 - received)
    assert.ok(keys.every(key => /^"split:[-\w]+:\d+"$/.test(key)) && keys.length === 2 * bodies.size, keys.join(' '))
    assert.match(stderr, /does not learn .* rows? that it may have learned must wait for it\n.*learns again/)
  })

  it('says what is in doubt if a signal stops it, and settles that with its state', async () => {
    const data = await file('a.svm', rows(100))
    const state = join(dir, 'state')
    const keys: unknown[] = []
    let isBroken = true
    const url = await serving((request, answer) => {
      keys.push(request.headers['idempotency-key'])
      if (!isBroken) answer.end('{}')
      else {
        request.socket.destroy()
        // The signal comes when the splitter has noticed.
        setTimeout(() => process.emit('SIGTERM', 'SIGTERM'), 100)
      }
    })
    const args = ['split', '--data', data, '--to', url, '--state', state]
    const { code, stderr } = await admb(args)
    assert.equal(code, 1)
    assert.match(stderr, /stopped by SIGTERM: \d+ rows? in doubt at http.*ERR_UNDELIVERED/)
    assert.match(
      (await admb([...args.slice(0, 3), '--to', 'http://127.0.0.1:1', '--to', url, '--state', await file('bad', '{}')]))
        .stderr,
      /ERR_SPLIT_STATE/
    )
    const other = await start()
    assert.match((await admb(['split', '--data', data, '--to', other.url, '--state', state])).stderr, /add --to http/)
    isBroken = false
    const before = new Set(keys.splice(0))
    const { rows: learned, inDoubt } = await admbJson(args)
    assert.deepEqual([learned, inDoubt], [100, 0])
    // What was on the way has the same keys.
    assert.ok([...before].every(key => keys.includes(key)) && before.size > 0)
    assert.equal(JSON.parse(await readFile(state, 'utf8')).peers[0].open.length, 0)
  })

  it('refuses the state of another run until that has ended', async () => {
    const data = await file('a.svm', rows(10))
    const state = join(dir, 'state')
    let second: Promise<string> | undefined
    const url = await serving((_request, answer) => {
      second ??= admbProcess(['split', '--data', data, '--to', url, '--state', state]).then(({ stderr }) => stderr)
      void second.finally(() => answer.end('{}'))
    })
    const args = ['split', '--data', data, '--to', url, '--state', state]
    assert.equal((await admbJson(args)).rows, 10)
    assert.match((await second) as string, /state is in use by the process \d+.*ERR_SPLIT_STATE/)
    // A process that has ended holds nothing.
    await writeFile(`${state}.lock`, '4194305')
    assert.equal((await admbJson(args)).rows, 0)
    await assert.rejects(readFile(`${state}.lock`), { code: 'ENOENT' })
  })

  it('refuses peers that read different columns, before it sends a row', async () => {
    const peersOf = (name: string, label = 'label') => {
      const features = { ...SPEC.features, label, columns: [{ name, kind: 'number' }] } as const
      return start({}, { spec: { ...SPEC, dimension: 1, features } })
    }
    const [a, b, c, d] = [await peersOf('x'), await peersOf('y'), await peersOf('x', 'z'), await peersOf('x')]
    const args = ['split', '--data', await file('a.csv', 'x,label\n1,yes\n2,no\n'), '--to', a.url]
    for (const { url } of [b, c]) {
      assert.match((await admb([...args, '--to', url])).stderr, new RegExp(`${a.url} and ${url} read .*ERR_USAGE`))
    }
    assert.equal((await admbJson([...args, '--to', d.url])).rows, 2)
  })

  it('refuses a server that is no peer, also beside a peer', async () => {
    const peer = await start()
    const data = await file('a.svm', rows(10))
    for (const [status, body] of [
      [200, '<html>'],
      [404, '<html>'],
      [404, '{"detail": "Not Found"}']
    ] as const) {
      const server = createServer((_request, answer) => answer.writeHead(status).end(body))
      servers.push(server)
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const { stderr } = await admb(['split', '--data', data, '--to', peer.url, '--to', url])
      assert.match(stderr, new RegExp(`${url}/schema is not a peer .it answers ${status}.*ERR_NO_PEER`))
    }
    assert.equal(peer.peer.status().inputs, 0)
  })

  it('refuses wrong addresses and tokens', async () => {
    const peer = await start({ token: ['a'.repeat(20)] })
    const data = await file('a.svm', rows(10))
    const fails = async (...words: string[]) => (await admb(['split', '--data', data, ...words])).stderr
    assert.match(await fails(), /--to HOST:PORT.*ERR_USAGE/)
    assert.match(await fails('--to', 'http://127.0.0.1:1'), /ERR_NO_PEER/)
    assert.match(await fails('--to', peer.url), /requires a token.*ERR_HTTP_TOKEN/)
    assert.match(await fails('--to', peer.url, '--http-token-file', await file('t', 'b'.repeat(20))), /ERR_HTTP_TOKEN/)
    const right = ['--http-token-file', await file('u', 'a'.repeat(20))]
    assert.match(await fails('--to', peer.url, '--to', peer.url, ...right), /given twice/)
    assert.equal((await admbJson(['split', '--data', data, '--to', peer.url, ...right])).rows, 10)
  })
})

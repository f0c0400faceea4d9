/** The guards of the HTTP server: token, host names, rates, timeouts and origins. */
import assert from 'node:assert/strict'
import { lookup } from 'node:dns/promises'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { admb } from '../../support/admb-command.js'
import { get, PeerServer, raw } from '../../support/http-server.js'
import { PeerProcesses } from '../../support/peer-processes.js'

const TOKEN = 'a-token-of-some-length'

async function failureOf(answer: Response): Promise<{ readonly error: string; readonly code: string }> {
  return (await answer.json()) as { error: string; code: string }
}

describe("the guards of a peer's HTTP server", function () {
  this.timeout(60_000)
  let served: PeerServer | undefined
  afterEach(async () => {
    await served?.stop()
    served = undefined
  })

  it('requires the token for everything except health', async () => {
    served = await PeerServer.start({ token: TOKEN })
    const { url } = served
    const routes = ['/status', '/predictor', '/metrics', '/openapi.json', '/nothing']
    for (const authorization of [
      undefined,
      'Bearer',
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(1)}`,
      TOKEN,
      'Basic eA=='
    ]) {
      for (const route of routes) {
        const answer = await fetch(url + route, { headers: authorization === undefined ? {} : { authorization } })
        assert.equal(answer.status, 401, `${authorization} ${route}`)
        assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer/)
        assert.equal((await failureOf(answer)).code, 'ERR_HTTP_TOKEN')
      }
    }
    for (const route of ['/healthz', '/readyz']) assert.notEqual((await fetch(url + route)).status, 401)
    const headers = { authorization: `Bearer ${TOKEN}` }
    assert.equal((await fetch(`${url}/status`, { headers })).status, 200)
    assert.equal((await served.post('/learn', '{"label": "yes", "features": {"1": 1}}')).status, 401)
    assert.equal(served.peer.status().inputs, 0)
  })

  it('does not listen beyond loopback without a token', async () => {
    await assert.rejects(PeerServer.start({ host: '0.0.0.0' }), { code: 'ERR_HTTP_TOKEN_REQUIRED' })
    await assert.rejects(PeerServer.start({ host: '::' }), /admb keygen token --out/)
    served = await PeerServer.start({ host: '0.0.0.0', token: TOKEN })
    const headers = { authorization: `Bearer ${TOKEN}`, host: 'peer.example' }
    assert.equal((await get(`http://127.0.0.1:${served.port}/status`, headers)).status, 200)
  })

  it('answers requests that arrive together with the first one, at every address of localhost', async () => {
    served = await PeerServer.start({ host: 'localhost' })
    const { port } = served
    const addresses = await lookup('localhost', { all: true })
    const urls = addresses.map(({ address, family }) => `http://${family === 6 ? `[${address}]` : address}:${port}`)
    const answers = await Promise.all([...urls, ...urls, ...urls].map(url => fetch(`${url}/status`)))
    for (const answer of answers) assert.equal(answer.status, 200)
  })

  it('accepts host names of loopback only, which prevents DNS rebinding', async () => {
    served = await PeerServer.start()
    const { url, port } = served
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      '127.0.0.1.evil.example',
      '192.0.2.1',
      'localhost.evil'
    ]) {
      const { status, text } = await get(`${url}/status`, { host })
      assert.equal(status, 403, host)
      assert.equal(JSON.parse(text).code, 'ERR_HTTP_HOST')
    }
    for (const host of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, '127.1.2.3']) {
      assert.equal((await get(`${url}/status`, { host })).status, 200, host)
    }
  })

  it('limits the rate of requests, except for health checks', async () => {
    served = await PeerServer.start({ requestsPerSecond: 3 })
    const { url } = served
    const answers = await Promise.all(Array.from({ length: 30 }, () => fetch(`${url}/status`)))
    const refused = answers.filter(({ status }) => status === 429)
    assert.ok(refused.length > 0)
    assert.equal((await failureOf(refused[0])).code, 'ERR_RATE_LIMIT')
    assert.ok(Number(refused[0].headers.get('retry-after')) >= 0)
    const unknown = await Promise.all(Array.from({ length: 30 }, () => fetch(`${url}/unknown`)))
    assert.ok(unknown.some(({ status }) => status === 429))
    const health = await Promise.all(Array.from({ length: 30 }, () => fetch(`${url}/healthz`)))
    assert.ok(health.every(({ status }) => status === 200))
  })

  it('times out slow heads and bodies', async () => {
    served = await PeerServer.start({ requestTimeoutMs: 400 })
    const { port } = served
    const head = `POST /learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n`
    const answers = await Promise.all([raw(port, `${head}\r\n{"label"`), raw(port, head)])
    for (const answer of answers) {
      assert.match(answer, /^HTTP\/1.1 408 /)
      assert.match(answer, /"code":"ERR_TIMEOUT"/)
    }
    assert.match(await raw(port, 'good morning\r\n\r\n'), /^HTTP\/1.1 400 [\s\S]*"code":"ERR_REQUEST"/)
  })

  it('rejects web pages of other than the given origins', async () => {
    const allowed = 'https://pages.example'
    const ask = async (url: string, origin: string) => {
      const headers = {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization'
      }
      const preflight = await fetch(`${url}/learn`, { method: 'OPTIONS', headers })
      const simple = await fetch(`${url}/healthz`, { headers: { origin } })
      return [preflight, simple].map(answer => answer.headers.get('access-control-allow-origin'))
    }
    served = await PeerServer.start()
    assert.deepEqual(await ask(served.url, allowed), [null, null])
    await served.stop()
    served = await PeerServer.start({ origins: [allowed], token: TOKEN })
    assert.deepEqual(await ask(served.url, allowed), [allowed, allowed])
    assert.deepEqual(await ask(served.url, 'https://evil.example'), [null, null])
  })

  describe('on the command line', () => {
    const processes = new PeerProcesses()
    let dir: string
    before(async () => {
      dir = await mkdtemp(join(tmpdir(), 'admb-test-'))
    })
    after(async () => {
      await processes.stop()
      await rm(dir, { recursive: true })
    })

    it('creates a token, requires it, and sends it', async () => {
      const file = join(dir, 'http.token')
      assert.equal((await admb(['keygen', 'token', '--out', file])).code, 0)
      assert.ok((await readFile(file, 'utf8')).trim().length >= 32)
      if (process.platform !== 'win32') assert.equal((await stat(file)).mode & 0o777, 0o600)
      assert.match((await admb(['keygen', 'token', '--out', file])).stderr, /already exists/)

      const peer = await processes.start('--dimension', '4', '--http-token-file', file).ready()
      const http = (peer.latest.http as string).replace('http://', '')
      const { code, stderr } = await admb(['status', '--http', http])
      assert.equal(code, 1)
      assert.match(stderr, /requires a token: give its --http-token-file/)
      const { stdout } = await admb(['status', '--http', http, '--http-token-file', file, '--json'])
      assert.equal(JSON.parse(stdout).id, peer.latest.id)
      assert.equal(await peer.stop(), 0)
      assert.ok(!peer.logs.some(({ msg }) => msg.includes('may read the token')))
    })

    it('reports an invalid token before it starts', async () => {
      const file = join(dir, 'short.token')
      await writeFile(file, 'short\n')
      const start = ['peer', '--dimension', '4', '--listen', '/ip4/127.0.0.1/tcp/0']
      assert.match((await admb([...start, '--http-token-file', file])).stderr, /no token of at least 16 characters/)
      assert.match((await admb([...start, '--http-token-file', join(dir, 'none')])).stderr, /cannot read .*none/)
      const { code, stderr } = await admb([...start, '--http', '0.0.0.0:0'])
      assert.equal(code, 1)
      assert.match(stderr, /needs a token: create one with admb keygen token --out/)
      assert.match(
        (await admb([...start, '--http', 'origin=pages'])).stderr,
        /origin pages of --http: give scheme and host/
      )
    })

    it('warns about a token that other users can read', async function () {
      if (process.platform === 'win32') this.skip()
      const file = join(dir, 'loose.token')
      await writeFile(file, TOKEN)
      await chmod(file, 0o644)
      const peer = await processes.start('--dimension', '4', '--http-token-file', file).ready()
      assert.ok(peer.logs.some(({ msg }) => msg.includes(`chmod 600 ${file}`)))
    })
  })
})

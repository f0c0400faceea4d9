/** HTTPS: the API, the command line, renewal of the certificate. */
import assert from 'node:assert/strict'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { admb } from '../../support/admb-command.js'
import { makeCertificate } from '../../support/certificate.js'
import { PeerServer } from '../../support/http-server.js'
import { PeerProcesses } from '../../support/peer-processes.js'
import { scratchFolder } from '../../support/scratch.js'

function statusOf(url: string, ca: Buffer, token: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { ca, headers: { authorization: `Bearer ${token}` } }, response => {
      response.resume()
      resolve(response.statusCode)
    })
    sent.on('error', reject).end()
  })
}

/** Common name of the certificate that a server presents. */
function presented(port: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      const { CN } = socket.getPeerCertificate().subject
      resolve(Array.isArray(CN) ? CN[0] : CN)
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

describe('HTTPS', function () {
  this.timeout(60_000)
  const dir = scratchFolder()

  it('serves page, API and metrics, and renews its certificate', async function () {
    const [one, two] = [makeCertificate(dir, 'one'), makeCertificate(dir, 'two')]
    if (one === undefined || two === undefined) this.skip()
    const read = async (files: typeof one) => ({ cert: await readFile(files.cert), key: await readFile(files.key) })
    const token = 'a-token-of-some-length'
    const served = await PeerServer.start({ token, tls: await read(one) })
    try {
      assert.match(served.url, /^https:/)
      const { cert } = await read(one)
      for (const path of ['/', '/status', '/metrics', '/openapi.json', '/schema']) {
        assert.equal(await statusOf(served.url + path, cert, token), 200, path)
      }
      assert.equal(await statusOf(`${served.url}/status`, cert, 'guessed'), 401)
      await assert.rejects(statusOf(`${served.url}/status`, (await read(two)).cert, token))
      assert.throws(() => served.server.renew({ cert, key: Buffer.from('none') }), { code: 'ERR_HTTP_CERTIFICATE' })
      assert.equal(await presented(served.port), 'one')
      served.server.renew(await read(two))
      assert.equal(await presented(served.port), 'two')
    } finally {
      await served.stop()
    }
  })

  describe('on the command line', () => {
    const processes = new PeerProcesses()
    after(() => processes.stop())
    const start = ['peer', '--dimension', '4', '--listen', '/ip4/127.0.0.1/tcp/0']

    it('admb status trusts the certificate that it is given', async function () {
      const files = makeCertificate(dir)
      if (files === undefined) this.skip()
      const token = join(dir, 'read.token')
      assert.equal((await admb(['keygen', 'token', '--role', 'read', '--out', token])).code, 0)
      const serving = ['--http', `cert=${files.cert},key=${files.key}`, '--http-token-file', token]
      const peer = await processes.start('--dimension', '4', ...serving).ready()
      const http = peer.latest.http as string
      const place = http.replace('https://', '')
      const ask = (...args: string[]) => admb(['status', '--json', ...args])
      const trusting = ['--http-ca', files.cert]
      const { stdout } = await ask('--http', place, ...trusting, '--http-token-file', token)
      assert.equal(JSON.parse(stdout).id, peer.latest.id)
      assert.match((await ask('--http', http)).stderr, /not trusted: give the peer's certificate with --http-ca/)
      assert.match((await ask('--http', place)).stderr, /may serve HTTPS: give --http https:/)
      assert.match((await ask('--http', place, ...trusting)).stderr, /requires a token/)
      const learner = join(dir, 'learn.token')
      await admb(['keygen', 'token', '--role', 'learn', '--out', learner])
      const refused = await ask('--http', http, ...trusting, '--http-token-file', learner)
      assert.match(refused.stderr, /requires another token/)
      const plain = await processes.start('--dimension', '4').ready()
      const wrong = (plain.latest.http as string).replace('http:', 'https:')
      assert.match((await ask('--http', wrong, ...trusting)).stderr, /may serve HTTP: give --http http:/)
    })

    it('reports files that do not fit before it starts', async function () {
      const [one, two] = [makeCertificate(dir, 'one'), makeCertificate(dir, 'two')]
      if (one === undefined || two === undefined) this.skip()
      const run = async (...args: string[]) => (await admb([...start, ...args])).stderr
      assert.match(await run('--http', `cert=${one.cert}`), /cannot serve HTTPS/)
      assert.match(await run('--http', `cert=${one.cert},key=${two.key}`), /cannot serve HTTPS \(key values mismatch\)/)
      assert.match(
        await run('--http', `cert=${join(dir, 'none')},key=${one.key}`),
        /check the path after cert in --http/
      )
      await writeFile(join(dir, 'empty.cert'), '')
      assert.match(await run('--http', `cert=${join(dir, 'empty.cert')},key=${one.key}`), /cannot serve HTTPS/)
    })

    it('uses new files without a restart', async function () {
      const [one, two] = [makeCertificate(dir, 'one'), makeCertificate(dir, 'two')]
      if (one === undefined || two === undefined) this.skip()
      const [cert, key] = [join(dir, 'used.cert'), join(dir, 'used.key')]
      const use = (files: typeof one) => Promise.all([copyFile(files.cert, cert), copyFile(files.key, key)])
      await use(one)
      const peer = await processes.start('--dimension', '4', '--http', `cert=${cert},key=${key}`).ready()
      const port = Number(new URL(peer.latest.http as string).port)
      assert.equal(await presented(port), 'one')
      await use(two)
      while ((await presented(port)) !== 'two') await new Promise(resolve => setTimeout(resolve, 200))
      assert.equal(await peer.stop(), 0)
    })
  })
})

/** `admb audit --peer` lets a running peer compute a sum of its neighbour again. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { admb } from '../../support/admb-command.js'
import { libraryPeers } from '../../support/library-peers.js'
import { until } from '../../support/peer-processes.js'

const MODULES = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url))
const HOSTILE = new URL('../../nemesis/hostile/preload.js', import.meta.url)

describe('admb audit --peer', function () {
  this.timeout(90_000)
  let directory = ''
  let server: Server | undefined
  const start = libraryPeers({ batch: 1000 })
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'admb-audit-'))
  })
  afterEach(async () => {
    server?.close()
    server = undefined
    await rm(directory, { recursive: true })
  })

  /** Two linked peers, of which the second one has learned two inputs. @returns the arguments of the audit by the first one */
  async function audited(permits: boolean): Promise<string[]> {
    const auditor = await start({ http: { port: 0 } })
    const permitted = permits ? { auditors: new Set([auditor.id]), dir: join(directory, 'state') } : {}
    const peer = await start({ ...permitted, peers: auditor.addresses })
    await until('they are linked', () => auditor.status().neighbours.length === 1)
    await peer.learnAll(
      [
        [1, 0],
        [0, 1]
      ],
      ['yes', 'no']
    )
    return ['audit', '--peer', peer.id, '--http', auditor.url as string]
  }

  it('confirms the sum of an honest peer', async () => {
    const command = await audited(true)
    const { code, stdout, stderr } = await admb(command)
    assert.equal(code, 0, stderr)
    assert.match(stdout, /\n {2}12D3KooW\w+ {2}2 inputs in 1 segment, mean loss 0\.6931, by class 1 1\n/)
    assert.match(stdout, /\nThe sum is that of the inputs\.\n$/)
    const { agrees, count, contributors } = JSON.parse((await admb([...command, '--json'])).stdout)
    assert.deepEqual([agrees, count, contributors.length], [true, 2, 1])
  })

  it('says who does not permit it', async () => {
    const { code, stderr } = await admb(await audited(false))
    assert.equal(code, 1)
    assert.match(stderr, /^admb: the sum of .*: this peer is not among its auditors \(ERR_AUDIT_INCOMPLETE\)\n$/)
  })

  it('fails if the sum is another one', async () => {
    const contributors = [{ id: 'x', segments: 1, inputs: 8, loss: 0.5 }]
    const norms = { sum: 9, difference: 7, allowed: 0.1 }
    const predictor = { updates: 3, origin: 'y', incarnation: 1, nonce: 0, digest: '0'.repeat(32) }
    const reason = 'the gradients of the inputs have another sum'
    server = createServer((_, answer) =>
      answer.end(JSON.stringify({ peer: 'x', predictor, count: 8, contributors, agrees: false, norms, reason }))
    ).listen(0)
    const { port } = server.address() as AddressInfo
    const { code, stdout, stderr } = await admb(['audit', '--peer', 'x', '--http', `127.0.0.1:${port}`])
    assert.equal(code, 1)
    assert.match(stdout, /norm {8}9\.00, differs by 7\.00 from that of the inputs \(rounding explains 0\.100\)/)
    assert.equal(stderr, `admb: the sum of x is not that of its inputs: ${reason} (ERR_AUDIT)\n`)
  })

  it('finds that a real peer sends other gradients than those of its inputs', async () => {
    const data = { data: { data: 'digits' }, rate: 200, features: undefined, classNames: undefined }
    const auditor = await start({ ...data, batch: 128, sums: 'exact', http: { port: 0 } })
    const file = join(directory, 'auditors')
    await writeFile(file, auditor.id)
    const options = ['--data', 'digits', '--rate', '200', '--batch', '128', '--sums', 'exact', '--auditors', file]
    const places = ['--dir', join(directory, 'state'), '--http', 'off', '--listen', '/ip4/127.0.0.1/tcp/0']
    const command = [MODULES, 'peer', ...options, ...places, '--peer', auditor.addresses[0]]
    const env = { ...process.env, NODE_OPTIONS: `--import=${HOSTILE.href}`, ADMB_ADVERSARY: 'sign-flip' }
    // The IPC channel ends the process if the test process ends.
    const hostile = spawn(process.execPath, command, { env, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    try {
      await until('an audit', async () => {
        // The tree may change while a peer joins.
        const [peer] = auditor.status().neighbours
        if (peer === undefined) return false
        const { code, stderr } = await admb(['audit', '--peer', peer, '--http', auditor.url as string])
        assert.notEqual(code, 0, stderr)
        return /is not that of its inputs: the gradients of the inputs have another sum \(ERR_AUDIT\)\n$/.test(stderr)
      })
    } finally {
      hostile.kill()
      await once(hostile, 'close')
    }
  })

  it('refuses what is no neighbour, and two kinds of audits at once', async () => {
    const command = await audited(true)
    const { id } = await start({})
    const stranger = await admb(command.with(2, id))
    assert.equal(stranger.code, 2)
    assert.match(stranger.stderr, /is not a tree neighbour of this peer: its status lists them \(ERR_USAGE\)\n$/)
    const both = await admb([...command, '--dir', directory])
    assert.match(both.stderr, /give one of them/)
  })

  it('reads the auditors of a peer from a file', async () => {
    const file = join(directory, 'auditors')
    await writeFile(file, 'no-peer-id\n')
    const { code, stderr } = await admb(['peer', '--data', 'digits', '--auditors', file])
    assert.equal(code, 1)
    assert.match(stderr, /^admb: .*no-peer-id.*\n$/)
  })
})

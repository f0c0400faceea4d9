/** `admb audit --peer` lets a running peer compute a sum of its neighbour again. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { AdversaryName } from '../../../sim/adversaries/index.js'
import type { LearningPeer } from '../../../src/library/create-peer.js'
import { admb } from '../../support/admb-command.js'
import { libraryPeers } from '../../support/library-peers.js'
import { until } from '../../support/peer-processes.js'

const MODULES = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url))
const HOSTILE = new URL('../../nemesis/hostile/preload.js', import.meta.url)

/** At this rate, no batch is full before the audits have ended. */
const DIGITS = { data: { data: 'digits' }, rate: 50, features: undefined, classNames: undefined }

describe('admb audit --peer', function () {
  this.timeout(90_000)
  let directory = ''
  let server: Server | undefined
  let hostile: ChildProcess | undefined
  const start = libraryPeers({ batch: 1000 })
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'admb-audit-'))
  })
  afterEach(async () => {
    hostile?.kill()
    if (hostile) await once(hostile, 'close')
    hostile = undefined
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

  it('confirms by signatures alone the sum of a peer that shows no inputs', async () => {
    const { code, stdout, stderr } = await admb([...(await audited(false)), '--no-inputs'])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /\n {2}12D3KooW\w+ {2}2 gradients in 1 segment, inputs not known\n/)
    assert.match(stdout, /\nsigned {6}by its contributors: the gradients that it contains\n$/)
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

  /** A peer process that does something hostile, and ends with the test. @returns its addresses */
  async function startHostile(kind: AdversaryName, options: string[] = []): Promise<string[]> {
    const learning = ['--data', 'digits', '--rate', '50', '--batch', '1000', ...options]
    const places = ['--http', 'off', '--listen', '/ip4/127.0.0.1/tcp/0']
    const env = { ...process.env, NODE_OPTIONS: `--import=${HOSTILE.href}`, ADMB_ADVERSARY: kind }
    // The IPC channel ends the process if the test process ends.
    const stdio = ['ignore', 'pipe', 'ignore', 'ipc'] as const
    const command = [MODULES, 'peer', '--json', ...learning, ...places]
    hostile = spawn(process.execPath, command, { env, stdio: [...stdio] })
    for await (const line of createInterface({ input: hostile.stdout as Readable })) return JSON.parse(line).addresses
    assert.fail('the hostile peer has ended')
  }

  /** Audits the only neighbour of a peer until the audit says this. */
  async function auditSays(auditor: LearningPeer, reason: RegExp, ...options: string[]): Promise<void> {
    await until('an audit', async () => {
      // The tree may change while a peer joins.
      const [peer] = auditor.status().neighbours
      if (peer === undefined) return false
      const { stderr } = await admb(['audit', '--peer', peer, '--http', auditor.url as string, ...options])
      return reason.test(stderr)
    })
  }

  it('finds that a real peer sends other gradients than those of its inputs', async () => {
    const auditor = await start({ ...DIGITS, sums: 'exact', http: { port: 0 } })
    const file = join(directory, 'auditors')
    await writeFile(file, auditor.id)
    const options = ['--sums', 'exact', '--auditors', file, '--dir', join(directory, 'state')]
    await startHostile('sign-flip', ['--peer', auditor.addresses[0], ...options])
    await auditSays(auditor, /is not that of its inputs: the gradients of the inputs have another sum \(ERR_AUDIT\)\n$/)
  })

  it('finds that a real peer forwards zeros in place of the gradients of another one', async () => {
    // The oldest peer is the root, so the others remain its children.
    const peers = await startHostile('erasure')
    const auditor = await start({ ...DIGITS, http: { port: 0 }, peers })
    const victim = await start({ ...DIGITS, peers })
    const between = peers[0].split('/').at(-1)
    const isBetween = ({ neighbours }: { neighbours: readonly string[] }) => neighbours.join() === between
    await until('it is between both', () => isBetween(auditor.status()) && isBetween(victim.status()))
    const reason =
      /^admb: the contributors have not signed the sum of \S+: the contributors have signed other gradients \(ERR_AUDIT\)\n$/
    await auditSays(auditor, reason, '--no-inputs')
  })

  it('refuses what is no neighbour, and two kinds of audits at once', async () => {
    const command = await audited(true)
    const { id } = await start({})
    const stranger = await admb(command.with(2, id))
    assert.equal(stranger.code, 2)
    assert.match(stranger.stderr, /is not a tree neighbour of this peer: its status lists them \(ERR_USAGE\)\n$/)
    const both = await admb([...command, '--dir', directory])
    assert.match(both.stderr, /give one of them/)
    const alone = await admb(['audit', '--dir', directory, '--no-inputs'])
    assert.match(alone.stderr, /^admb: --no-inputs is for the sum of a neighbour: give its --peer ID \(ERR_USAGE\)\n$/)
  })

  it('reads the auditors of a peer from a file', async () => {
    const file = join(directory, 'auditors')
    await writeFile(file, 'no-peer-id\n')
    const { code, stderr } = await admb(['peer', '--data', 'digits', '--auditors', file])
    assert.equal(code, 1)
    assert.match(stderr, /^admb: .*no-peer-id.*\n$/)
  })
})

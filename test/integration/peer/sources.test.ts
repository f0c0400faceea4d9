/** Sources of a peer across restarts: which rows it learns again, and which it does not miss. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

/** LIBSVM rows with two features, whose values depend on `from`. */
function rows(from: number, to: number): string {
  return Array.from({ length: to - from }, (_, i) => `${(from + i) % 2} 1:${from + i} 2:${(from + i) % 3}\n`).join('')
}

const LIBSVM = ['--format', 'libsvm', '--dimension', '2', '--batch', '8']

describe('a peer that restarts', function () {
  this.timeout(120_000)
  const processes = new PeerProcesses()
  let dir: string
  beforeEach(async () => {
    dir = await processes.scratch()
  })
  afterEach(() => processes.stop())

  const start = (data: string, ...more: string[]) =>
    processes.start('--data', data, ...LIBSVM, '--dir', join(dir, 'state'), ...more).ready()
  const messages = ({ logs }: PeerProcess) => logs.map(({ msg }) => msg)

  async function feed(text: string): Promise<PeerProcess> {
    const peer = await start('-')
    peer.child.stdin?.end(text)
    await until('standard input has ended', () => peer.latest.ended)
    assert.equal(await peer.stop(), 0, peer.stderr)
    return peer
  }

  it('learns all of standard input, which cannot be replayed, and says so', async () => {
    assert.equal((await feed(rows(0, 1200))).latest.inputs, 1200)
    const second = await feed(rows(1200, 2500))
    assert.equal(second.latest.inputs, 2500)
    const [line, ...others] = messages(second).filter(message => message.includes('cannot be replayed'))
    assert.match(
      line,
      /^standard input cannot be replayed: it is read from its first line \(1,?200 inputs were learned/
    )
    assert.deepEqual(others, [])
  })

  async function learnToEnd(data: string, ...more: string[]): Promise<PeerProcess> {
    const peer = await start(data, ...more)
    await until('the file has ended', () => peer.latest.ended)
    assert.equal(await peer.stop(), 0, peer.stderr)
    return peer
  }

  it('learns a file that replaces the one before from its beginning, and says so', async () => {
    const data = join(dir, 'rows')
    await writeFile(data, rows(0, 700))
    await learnToEnd(data)
    await writeFile(data, rows(5000, 5600))
    const second = await learnToEnd(data)
    assert.equal(second.latest.inputs, 1300)
    assert.ok(messages(second).some(message => /rows is not the file that was read before/.test(message)))
  })
})

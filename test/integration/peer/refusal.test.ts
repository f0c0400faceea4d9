/** Incompatible peers: they log one line with the reason, and are never linked. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { admb } from '../../support/admb-command.js'
import { type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

const SLOW = ['--data', 'digits', '--rate', '20', '--batch', '16']

describe('an incompatible peer', function () {
  this.timeout(120_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  const warnings = (peer: PeerProcess) => peer.logs.filter(({ level }) => level === 'warn').map(({ msg }) => msg)
  const logged = (peer: PeerProcess, pattern: RegExp) =>
    until(`a log line matches ${pattern}`, () => warnings(peer).some(line => pattern.test(line)))

  async function neverLinked(...peers: PeerProcess[]): Promise<void> {
    await sleep(1500)
    for (const peer of peers) {
      assert.ok(peer.messages.every(({ object }) => object.neighbours.length === 0))
      assert.equal(peer.child.exitCode, null, peer.stderr)
    }
  }

  it('has another network key, or none: logs it once, retries, never links', async () => {
    const dir = await processes.scratch()
    const keys = [join(dir, 'a.key'), join(dir, 'b.key')]
    for (const key of keys) await admb(['keygen', 'network', '--out', key])
    const first = await processes.start(...SLOW, '--network-key', keys[0]).ready()
    const [address] = first.latest.addresses
    const other = await processes.start(...SLOW, '--network-key', keys[1], '--peer', address).ready()
    const keyless = await processes.start(...SLOW, '--peer', address).ready()
    for (const peer of [other, keyless]) await logged(peer, /ended before encryption.*--network-key.*; trying again/)
    await neverLinked(first, other, keyless)
    for (const peer of [other, keyless]) assert.equal(warnings(peer).length, 1, peer.stderr)
    const friend = await processes.start(...SLOW, '--network-key', keys[0], '--peer', address).ready()
    await until('the peer with the key is linked', () => friend.latest.neighbours.length === 1)
  })

  it('has another batch size or model: both peers log the field and both values', async () => {
    const first = await processes.start(...SLOW).ready()
    const [address] = first.latest.addresses
    const batch = await processes.start(...SLOW.slice(0, -1), '17', '--peer', address).ready()
    await logged(batch, /has batch 16, this peer 17: start both with the same --batch/)
    await logged(first, /has batch 17, this peer 16: start both with the same --batch/)
    const size = ['--batch', '16', '--peer', address]
    const model = await processes.start('--dimension', '784', '--model', 'logistic', ...size).ready()
    await logged(model, /has model softmax, this peer logistic: start both with the same --model/)
    await neverLinked(first, batch, model)
  })

  it('learns by another rule: neither adopts the other predictor, although they have the same shape', async () => {
    const first = await processes.start(...SLOW).ready()
    const [address] = first.latest.addresses
    const other = await processes.start(...SLOW, '--rate', '200', '--l2', '0.01', '--peer', address).ready()
    await logged(other, /has l2 0, this peer 0.01: start both with the same --l2/)
    await until('it has more updates', () => other.latest.updates > first.latest.updates + 20)
    await sleep(3000)
    await neverLinked(first, other)
    assert.equal(first.latest.adopted, 0)
    assert.equal(other.latest.adopted, 0)
  })

  it('belongs to another network of the same model: both log the ids, and neither adopts the other predictor', async () => {
    const dir = await processes.scratch()
    const key = join(dir, 'net.key')
    await admb(['keygen', 'network', '--id', 'spring', '--out', key])
    const keyed = [...SLOW, '--network-key', key]
    const first = await processes.start(...keyed, '--dir', join(dir, 'first')).ready()
    const [address] = first.latest.addresses
    const fork = await processes.start(...keyed, '--network-id', 'autumn', '--rate', '200', '--peer', address).ready()
    await logged(fork, /has network-id spring, this peer autumn: .* same --network-id$/)
    await logged(first, /has network-id autumn, this peer spring: .* same --network-id$/)
    await until('the fork has more updates', () => fork.latest.updates > first.latest.updates + 5)
    await neverLinked(first, fork)
    assert.equal(first.latest.adopted, 0)
    const friend = await processes.start(...keyed, '--peer', address).ready()
    await until('the friend is linked', () => friend.latest.neighbours.length === 1)
    first.child.kill('SIGTERM')
    await until('the first peer ends', () => first.child.exitCode !== null)
    const moved = await admb(['peer', ...keyed, '--dir', join(dir, 'first'), '--network-id', 'autumn'])
    assert.equal(moved.code, 1)
    assert.match(moved.stderr, /belongs to network spring, and this peer is started for network autumn/)
  })

  it('chooses b within other bounds: both log them, and peers with the same bounds are linked', async () => {
    const adaptive = [...SLOW.slice(0, -1), '16..64']
    const first = await processes.start(...adaptive).ready()
    const [address] = first.latest.addresses
    const fixed = await processes.start(...SLOW, '--peer', address).ready()
    await logged(fixed, /has batch 16\.\.64, this peer 16: start both with the same --batch/)
    const other = await processes.start(...SLOW.slice(0, -1), 'auto', '--peer', address).ready()
    await logged(other, /has batch 16\.\.64, this peer 32\.\.4096: start both with the same --batch/)
    const friend = await processes.start(...adaptive, '--peer', address).ready()
    await until('the friend is linked', () => friend.latest.neighbours.length === 1)
    await neverLinked(fixed, other)
    assert.ok(first.latest.batch >= 16 && first.latest.batch <= 64)
  })

  it('is not on the allow-list', async () => {
    const dir = await processes.scratch()
    const friendly = join(dir, 'friend')
    const id = (await admb(['keygen', 'identity', '--dir', friendly])).stdout.trim()
    const list = join(dir, 'allowed.txt')
    await writeFile(list, `# who may come\n${id}   # a friend\n\n`)
    const guarded = await processes.start(...SLOW, '--allow', list).ready()
    const [address] = guarded.latest.addresses
    const stranger = await processes.start(...SLOW, '--peer', address).ready()
    await logged(stranger, /refused this peer: add 12D3Koo\w+ to its allow-list/)
    const friend = await processes.start(...SLOW, '--peer', address, '--dir', friendly).ready()
    assert.equal(friend.latest.id, id)
    await until('the friend is linked', () => friend.latest.neighbours.length === 1)
    await neverLinked(stranger)
    assert.deepEqual(guarded.latest.neighbours, [id])
  })

  it('is not running yet: retried until it is', async () => {
    const server = createServer()
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    await new Promise(resolve => server.close(resolve))
    const address = `/ip4/127.0.0.1/tcp/${port}`
    const early = await processes.start(...SLOW, '--peer', address).ready()
    await logged(early, /cannot reach .*connection refused.*; trying again/)
    await until('the peer learns meanwhile', () => early.latest.inputs > 0)
    const late = await processes.start(...SLOW, '--listen', address).ready()
    await until('they are linked', () => early.latest.neighbours.includes(late.latest.id))
    assert.equal(warnings(early).length, 1, early.stderr)
  })
})

/** Many peers that know one address: idle connections are closed, and their peers are referred to others. */
import assert from 'node:assert/strict'
import { decodeReferral } from '../../../src/network/connections.js'
import { UnreachablePeerError } from '../../../src/network/errors.js'
import type { Network } from '../../../src/network/network.js'
import { openSession, Peers, Recorder, targetOf, timeout, until } from '../../support/network-peers.js'

describe('connections', function () {
  this.timeout(120_000)
  const peers = new Peers()
  afterEach(() => peers.stop())

  it('are closed to admit new peers: 60 peers connect to one with a limit of 48', async () => {
    const hub = await peers.start({ limits: { connections: 48, idleConnectionMs: 200 } })
    const neighbour = await peers.start()
    const [session, inbound] = await openSession(neighbour, hub)
    let ended: string | undefined
    hub.onDevice(() => undefined)
    const device = await (await peers.start({ hello: { protocol: 1, fields: [['worker', '1']] } })).openDevice(
      targetOf(hub),
      timeout()
    )
    device.receive({
      message: () => undefined,
      closed: reason => {
        ended = reason
      }
    })
    const recorder = new Recorder()
    for (const end of [session, inbound]) end.start(recorder)
    const contacts = new Map<Network, Set<string>>()
    for (let i = 0; i < 60; i++) {
      const newcomer = await peers.start()
      const known = new Set<string>()
      contacts.set(newcomer, known)
      newcomer.onPeer(({ kind, id }) => void (kind === 'discovered' && known.add(id)))
      await until(() => hub.peers.length < 48, 10_000)
      await connect(newcomer, hub)
    }
    await until(() => hub.peers.length <= 43, 10_000)
    const referred = [...contacts].filter(([network]) => network.wasReferredBy(hub.id, 60_000))
    assert.ok(referred.length >= 15, `${referred.length} were referred to others`)
    for (const [, known] of referred) assert.ok(known.size > 0, `${known.size} contacts`)
    assert.ok(
      referred.some(([, known]) => known.has(neighbour.id)),
      'the tree neighbour is named'
    )
    assert.equal(session.ended, undefined, 'the session has ended')
    assert.ok(hub.peers.some(({ id }) => id === neighbour.id))
    assert.equal(ended, undefined, 'the line to a device has ended')
  })

  it('are refused with the right reason when none is free', async () => {
    const hub = await peers.start({ limits: { connections: 2, idleConnectionMs: 60_000 } })
    for (let i = 0; i < 2; i++) await (await peers.start()).connect(targetOf(hub), timeout())
    await assert.rejects((await peers.start()).connect(targetOf(hub), timeout()), /too many connections/)
  })

  it('are not affected by malformed referrals', () => {
    const id = '12D3KooWHdBLaPnsq7DkMpdBeqE9W8P7CAbfvurxUFdXfTpcKSjL'
    const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
    const valid = { id, addresses: [`/ip4/192.0.2.7/tcp/4001/p2p/${id}`] }
    assert.deepEqual(decodeReferral(encode([valid])), [valid])
    for (const malformed of [
      {},
      [{ id }],
      [{ id, addresses: ['/ip4/192.0.2.7/tcp/4001'] }],
      [{ id, addresses: [`nonsense/p2p/${id}`] }],
      Array(9).fill(valid)
    ])
      assert.throws(() => decodeReferral(encode(malformed)), /malformed referral/)
    assert.throws(() => decodeReferral(Uint8Array.of(255)), /malformed referral/)
  })
})

/** Dials until the hub has a free connection. */
async function connect(from: Network, to: Network): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await from.connect(targetOf(to), timeout())
      return
    } catch (error) {
      if (attempt === 50 || error instanceof UnreachablePeerError) throw error
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }
}

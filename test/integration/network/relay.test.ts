/** Peers that are reachable only through a relay, or only through WebSockets, on loopback. */
// Must be imported before libp2p, for Node.js 20.
import '../../../src/network/polyfill.js'
import assert from 'node:assert/strict'
import { circuitRelayTransport } from '@libp2p/circuit-relay-v2'
import { identify } from '@libp2p/identify'
import { noise } from '@libp2p/noise'
import { tcp } from '@libp2p/tcp'
import { yamux } from '@libp2p/yamux'
import { createLibp2p, type Libp2p } from 'libp2p'
import { generateIdentityKey, generateNetworkKey, peerIdOf } from '../../../src/network/keys.js'
import { defaultLimits } from '../../../src/network/limits.js'
import type { Network } from '../../../src/network/network.js'
import type { NetworkOptions } from '../../../src/network/options.js'
import { WebSocketUpgrades } from '../../../src/network/types.js'
import { openSession, Peers, pattern, Recorder, targetOf, timeout, until } from '../../support/network-peers.js'

const ECHO = '/echo/1'
const CHUNK = 1000

/** Listen addresses through a relay. */
const through = (relay: Network) => [`${relay.addresses[0]}/p2p-circuit`]

describe('a relay', function () {
  this.timeout(30_000)
  const peers = new Peers()
  afterEach(() => peers.stop())

  it('connects a peer that listens nowhere else, with sessions, frames and gossip', async () => {
    for (const networkKey of [undefined, generateNetworkKey()]) {
      const relay = await peers.start({ relay: true, networkKey })
      const hidden = await peers.start({ listen: through(relay), networkKey })
      assert.ok(hidden.addresses.length > 0)
      for (const address of hidden.addresses)
        assert.ok(address.includes(`/p2p/${relay.id}/p2p-circuit/p2p/${hidden.id}`), address)
      const other = await peers.start({ listen: [], networkKey })
      assert.equal(await other.connect({ addresses: [hidden.addresses[0]] }, timeout()), hidden.id)
      const [a, b] = await openSession(other, hidden)
      const [atA, atB] = [new Recorder(), new Recorder()]
      a.start(atA)
      b.start(atB)
      // Exceeds the default limit of libp2p's relays.
      const frame = pattern(3_000_000, 1)
      await a.sendFrame(frame)
      await until(() => atB.frames.length === 1, 20_000)
      assert.deepEqual(Buffer.from(atB.frames[0]), Buffer.from(frame))
      const received: string[] = []
      hidden.onGossip((topic, from) => received.push(`${topic} ${from}`))
      other.publish('head', Uint8Array.of(1))
      await until(() => received.includes(`head ${other.id}`))
      await peers.stop()
    }
  })

  it('is part of the relayed peer’s address, and not mistaken for that peer', async () => {
    const relay = await peers.start({ relay: true })
    const hidden = await peers.start({ listen: through(relay) })
    const other = await peers.start()
    await hidden.connect(targetOf(other), timeout())
    await until(() => other.peers.length === 1)
    const [known] = other.peers
    assert.equal(known.id, hidden.id)
    assert.ok(known.addresses.length > 0)
    for (const address of known.addresses) assert.ok(address.endsWith(`/p2p-circuit/p2p/${hidden.id}`), address)
    await assert.rejects(other.connect({ id: other.id, addresses: hidden.addresses }, timeout()), /this peer itself/)
  })

  it('serves only peers on its allow-list', async () => {
    const keys = await Promise.all([generateIdentityKey(), generateIdentityKey()])
    const [listener, dialler] = keys.map(peerIdOf)
    const relay = await peers.start({ relay: true, allow: new Set([listener, dialler]) })
    const hidden = await peers.start({ listen: through(relay), privateKey: keys[0] })
    const other = await peers.start({ listen: [], privateKey: keys[1] })
    await openSession(other, hidden)
    const stranger = await peers.start({ listen: [] })
    await assert.rejects(stranger.connect(targetOf(hidden), timeout()))
    await assert.rejects(peers.start({ listen: through(relay) }), /cannot listen on/)
  })

  it('is reported if the address is not a relay', async () => {
    const plain = await peers.start()
    await assert.rejects(peers.start({ listen: through(plain) }), /cannot listen on .*p2p-circuit.*--relay/)
  })

  it('renews the reservation of a peer after a restart', async () => {
    const privateKey = await generateIdentityKey()
    const options: Partial<NetworkOptions> = { relay: true, privateKey }
    const before = await peers.start(options)
    const listen = through(before)
    const hidden = await peers.start({ listen })
    await before.stop()
    await until(() => hidden.addresses.length === 0)
    const after = await peers.start({ ...options, listen: [listen[0].replace(/\/p2p\/.*/, '')] })
    await until(() => hidden.addresses.length > 0, 20_000)
    const other = await peers.start({ listen: [] })
    await openSession(other, hidden)
    assert.equal(after.id, before.id)
  })
})

describe('a relay for tabs', function () {
  this.timeout(60_000)
  const peers = new Peers()
  const nodes: Libp2p[] = []
  afterEach(async () => {
    await Promise.all(nodes.splice(0).map(node => node.stop()))
    await peers.stop()
  })
  const startRelay = (limits: NetworkOptions['limits'] = {}) =>
    peers.start({ upgrades: new WebSocketUpgrades(), limits })

  /** A stream between two nodes of libp2p over a relay, which the second one echoes. */
  async function connected(relay: Network) {
    const [hidden, other] = await Promise.all([node(through(relay)), node([])])
    await hidden.handle(ECHO, stream => stream.addEventListener('message', ({ data }) => void stream.send(data)), {
      runOnLimitedConnection: true
    })
    const [address] = hidden.getMultiaddrs()
    const from = await other.dialProtocol(address, ECHO, { runOnLimitedConnection: true })
    let bytes = 0
    from.addEventListener('message', ({ data }) => {
      bytes += data.byteLength
    })
    return { from, echoed: () => bytes }
  }

  async function node(listen: string[]): Promise<Libp2p> {
    const created = await createLibp2p({
      addresses: { listen },
      transports: [tcp(), circuitRelayTransport()],
      connectionEncrypters: [noise()],
      streamMuxers: [yamux()],
      services: { identify: identify() }
    })
    nodes.push(created)
    return created
  }

  it('connects two peers, but carries neither sessions nor fetches', async () => {
    const relay = await startRelay()
    const hidden = await peers.start({ listen: through(relay) })
    const other = await peers.start({ listen: [] })
    assert.equal(await other.connect({ addresses: [hidden.addresses[0]] }, timeout()), hidden.id)
    await assert.rejects(other.open(targetOf(hidden), timeout()))
    await assert.rejects(other.fetch(targetOf(hidden), Uint8Array.of(1), timeout()))
    await until(() => other.peers.some(({ id }) => id === relay.id))
    for (const { peers } of [other, hidden])
      assert.deepEqual(
        peers.map(({ id }) => id),
        [relay.id]
      )
  })

  it('refuses further peers when its places are taken, and gives the place of a peer that has gone to another', async () => {
    const relay = await startRelay({ relayedPeers: 1 })
    const first = await peers.start({ listen: through(relay) })
    await assert.rejects(peers.start({ listen: through(relay) }), /cannot listen on/)
    await first.stop()
    await until(() => relay.peers.length === 0)
    const second = await peers.start({ listen: through(relay) })
    assert.ok(second.addresses.length > 0)
  })

  it('ends a connection after a number of bytes, of both directions together', async () => {
    const signallingBytes = 20_000
    const { from, echoed } = await connected(await startRelay({ signallingBytes }))
    let sent = 0
    while (from.status === 'open' && sent < 2 * signallingBytes) {
      sent += CHUNK
      from.send(new Uint8Array(CHUNK))
      await until(() => echoed() >= sent || from.status !== 'open')
    }
    await until(() => from.status !== 'open')
    assert.ok(sent >= signallingBytes / 4 && 2 * echoed() <= signallingBytes, `${sent} sent, ${echoed()} echoed`)
  })

  it('ends a connection after a while', async () => {
    const signallingMs = 1500
    const start = performance.now()
    const { from } = await connected(await startRelay({ signallingMs }))
    assert.equal(from.status, 'open')
    await until(() => from.status !== 'open', 20_000)
    // Timers may run up to a millisecond early.
    assert.ok(performance.now() - start >= signallingMs - 1)
  })

  it('has limits by default', () => {
    assert.equal(defaultLimits.signallingBytes, 64 * 1024)
    assert.equal(defaultLimits.signallingMs, 60_000)
  })

  it('needs the network key of both', async () => {
    const networkKey = generateNetworkKey()
    const relay = await peers.start({ upgrades: new WebSocketUpgrades(), networkKey })
    const hidden = await peers.start({ listen: through(relay), networkKey })
    const other = await peers.start({ listen: [], networkKey })
    assert.equal(await other.connect({ addresses: [hidden.addresses[0]] }, timeout()), hidden.id)
    const stranger = await peers.start({ listen: [], networkKey: generateNetworkKey() })
    await assert.rejects(stranger.connect({ addresses: [hidden.addresses[0]] }, AbortSignal.timeout(3000)))
  })
})

describe('a WebSocket', function () {
  this.timeout(30_000)
  const peers = new Peers()
  afterEach(() => peers.stop())

  it('carries sessions and frames like TCP', async () => {
    for (const networkKey of [undefined, generateNetworkKey()]) {
      const one = await peers.start({ listen: ['/ip4/127.0.0.1/tcp/0/ws'], networkKey })
      assert.match(one.addresses[0], /\/tcp\/\d+\/ws\/p2p\//)
      const two = await peers.start({ listen: [], dials: one.addresses, networkKey })
      const [a, b] = await openSession(two, one)
      const atB = new Recorder()
      a.start(new Recorder())
      b.start(atB)
      const frame = pattern(8_000_000, 1)
      await a.sendFrame(frame)
      await until(() => atB.frames.length === 1, 20_000)
      assert.deepEqual(Buffer.from(atB.frames[0]), Buffer.from(frame))
      await peers.stop()
    }
  })
})

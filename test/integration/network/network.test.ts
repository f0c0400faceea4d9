import assert from 'node:assert/strict'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PeerEvent } from '../../../src/network/connections.js'
import * as errors from '../../../src/network/errors.js'
import { generateIdentityKey, generateNetworkKey, peerIdOf } from '../../../src/network/keys.js'
import type { LogLevel } from '../../../src/network/types.js'
import { hello, openSession, Peers, pattern, Recorder, targetOf, timeout, until } from '../../support/network-peers.js'

describe('a network', () => {
  const peers = new Peers()
  afterEach(() => peers.stop())

  it('is reachable at its addresses, with or without its id', async () => {
    const [one, two] = [await peers.start(), await peers.start()]
    assert.ok(two.addresses[0].endsWith(`/p2p/${two.id}`))
    const bare = two.addresses[0].replace(/\/p2p\/.*/, '')
    assert.equal(await one.connect({ addresses: [bare] }, timeout()), two.id)
    assert.equal(await one.connect({ addresses: [two.addresses[0]] }, timeout()), two.id)
    await until(() => one.peers.length === 1 && two.peers.length === 1)
    assert.deepEqual(one.peers[0], { id: two.id, addresses: two.addresses })
    assert.deepEqual(two.peers[0], { id: one.id, addresses: one.addresses })
  })

  it('reports when a peer connects and disconnects', async () => {
    const [one, two] = [await peers.start(), await peers.start()]
    const events: PeerEvent[] = []
    two.onPeer(event => events.push(event))
    await one.connect(targetOf(two), timeout())
    await until(() => events.some(({ kind, id }) => kind === 'connected' && id === one.id))
    await one.stop()
    await until(() => events.some(({ kind, id }) => kind === 'lost' && id === one.id))
  })

  it('gossips to peers, and sends the latest messages to those that connect later', async () => {
    const [one, two, three] = [await peers.start(), await peers.start(), await peers.start()]
    const received: string[] = []
    three.onGossip((topic, from, message) => received.push(`${topic} ${from} ${message[0]}`))
    one.publish('head', Uint8Array.of(1))
    one.publish('beacon', Uint8Array.of(2))
    await two.connect(targetOf(one), timeout())
    await three.connect(targetOf(two), timeout())
    await three.connect(targetOf(one), timeout())
    await until(() => received.includes(`head ${one.id} 1`) && received.includes(`beacon ${one.id} 2`))
    two.publish('head', Uint8Array.of(3))
    await until(() => received.includes(`head ${two.id} 3`))
    assert.throws(() => one.publish('head', new Uint8Array(16 * 1024 + 1)), RangeError)
  })

  it('drops gossip that exceeds the rate limit of its origin', async () => {
    const [one, two] = [await peers.start(), await peers.start({ limits: { gossipPerSecond: 5 } })]
    // The beacon may arrive twice: by gossip, and in the catch-up.
    const received = { beacon: 0, head: 0, run: 0 }
    two.onGossip(topic => received[topic]++)
    await one.connect(targetOf(two), timeout())
    one.publish('beacon', Uint8Array.of(0))
    await until(() => received.beacon > 0)
    const start = performance.now()
    for (let i = 1; i <= 200; i++) {
      one.publish('head', Uint8Array.of(i))
      await new Promise(resolve => setTimeout(resolve, 2))
    }
    await until(() => received.head >= 10)
    await new Promise(resolve => setTimeout(resolve, 200))
    // A burst of two seconds' messages, and then five a second.
    const limit = 10 + (5 * (performance.now() - start)) / 1000
    assert.ok(received.head <= limit, `${received.head} messages passed, the limit is ${limit}`)
  })

  it('fetches responses of any size', async () => {
    const [one, two] = [await peers.start(), await peers.start({ maxFrameBytes: 2 ** 25 })]
    const large = pattern(20_000_000, 1)
    two.onFetch(async (request, from) => {
      assert.equal(from, one.id)
      if (request[0] === 0) return undefined
      return request[0] === 1 ? [large.subarray(0, 7), large.subarray(7)] : new Uint8Array(0)
    })
    const target = targetOf(two)
    assert.ok(Buffer.from(large.buffer).equals(await one.fetch(target, Uint8Array.of(1), timeout())))
    assert.equal((await one.fetch(target, Uint8Array.of(2), timeout())).length, 0)
    await assert.rejects(one.fetch(target, Uint8Array.of(0), timeout()), /nothing found/)
    await assert.rejects(two.fetch(targetOf(one), Uint8Array.of(1), timeout()), /nothing found/)
  })

  it('rejects fetched responses above the limit, and requests above the rate limit', async () => {
    const one = await peers.start({ maxFrameBytes: 10 })
    const two = await peers.start({ limits: { fetchesPerSecond: 2 } })
    two.onFetch(async request => new Uint8Array(request[0]))
    const target = targetOf(two)
    await assert.rejects(
      one.fetch(target, Uint8Array.of(11), timeout()),
      /a frame of 11 bytes is announced; the maximum is 10/
    )
    for (let i = 0; i < 3; i++) await one.fetch(target, Uint8Array.of(10), timeout())
    await assert.rejects(one.fetch(target, Uint8Array.of(10), timeout()), /too many requests/)
  })

  it('aborts a fetch on the signal', async () => {
    const [one, two] = [await peers.start(), await peers.start()]
    two.onFetch(() => new Promise(() => {}))
    const reason = new Error('found elsewhere')
    const controller = new AbortController()
    setTimeout(() => controller.abort(reason), 100)
    await assert.rejects(one.fetch(targetOf(two), Uint8Array.of(1), controller.signal), reason)
  })

  it('warns of no session that the other end gives up before it begins, because it has another one', async () => {
    const ended: string[] = []
    const log = (level: LogLevel, message: string) => ended.push(`${level}: ${message}`)
    const [one, two] = [await peers.start(), await peers.start({ log })]
    two.onSession(session => session.close('not needed'))
    await one.connect(targetOf(two), timeout())
    // The moment between the stream and its hello is short.
    for (let attempt = 0; ended.length === 0; attempt++) {
      const controller = new AbortController()
      const opened = one.open(targetOf(two), controller.signal)
      for (let turn = 0; turn < attempt % 30; turn++) await new Promise(setImmediate)
      controller.abort(new Error('linked meanwhile'))
      await opened.then(
        session => session.close('not needed'),
        () => {}
      )
    }
    for (const line of ended) assert.match(line, /^debug: a session with \w+ ended before it began: /)
  })

  it('disconnects blocked peers, and accepts them again afterwards', async () => {
    const [one, two] = [await peers.start(), await peers.start()]
    const [a, b] = await openSession(one, two)
    const atB = new Recorder()
    a.start(new Recorder())
    b.start(atB)
    one.block(new Set([two.id]))
    await atB.closed
    await until(() => one.peers.length === 0 && two.peers.length === 0)
    await assert.rejects(one.open(targetOf(two), timeout()), errors.PeerDeniedError)
    await assert.rejects(two.open(targetOf(one), timeout()), errors.PeerRefusedError)
    one.block(undefined)
    const [c] = await openSession(two, one)
    assert.equal(c.peer, one.id)
  })

  it('connects only to peers on the allow-list', async () => {
    const key = await generateIdentityKey()
    const guarded = await peers.start({ allow: new Set([peerIdOf(key)]) })
    const [friend, stranger] = [await peers.start({ privateKey: key }), await peers.start()]
    await assert.rejects(stranger.open(targetOf(guarded), timeout()), (error: Error) => {
      assert.ok(error instanceof errors.PeerRefusedError, error.stack)
      assert.ok(error.message.includes(stranger.id))
      return true
    })
    await assert.rejects(guarded.open(targetOf(stranger), timeout()), errors.PeerDeniedError)
    await openSession(friend, guarded)
  })

  it('connects with the same network key, and reports a different or missing one', async () => {
    const networkKey = generateNetworkKey()
    const limits = { dialTimeoutMs: 500 }
    const [one, two] = [await peers.start({ networkKey, limits }), await peers.start({ networkKey })]
    const [other, open] = [await peers.start({ networkKey: generateNetworkKey() }), await peers.start({ limits })]
    const [a, b] = await openSession(one, two)
    const atB = new Recorder()
    a.start(new Recorder())
    b.start(atB)
    const frame = pattern(8_000_000, 1)
    await a.sendFrame(frame)
    assert.ok(Buffer.from(frame.buffer).equals(atB.frames[0]))
    const line = /the connection ended before encryption .*--network-key/
    await assert.rejects(one.open(targetOf(other), timeout()), line)
    await assert.rejects(one.open(targetOf(open), timeout()), line)
    await assert.rejects(open.open(targetOf(one), timeout()), line)
  })

  it('neither opens sessions, nor gossips, nor fetches between networks with different ids', async () => {
    const [one, two] = [await peers.start({ networkId: 'one' }), await peers.start({ networkId: 'two' })]
    const [same, none] = [await peers.start({ networkId: 'one' }), await peers.start()]
    const heard: string[] = []
    for (const [name, peer] of Object.entries({ two, same, none })) {
      peer.onFetch(async () => Uint8Array.of(1))
      peer.onGossip(() => heard.push(name))
      await one.connect(targetOf(peer), timeout())
    }
    const differs = {
      code: 'ERR_INCOMPATIBLE_PEER',
      message: /has network-id two, this peer one: .* same --network-id$/
    }
    await assert.rejects(one.open(targetOf(two), timeout()), differs)
    await assert.rejects(one.open(targetOf(none), timeout()), /has network-id \(none\), this peer one/)
    await assert.rejects(none.open(targetOf(one), timeout()), /has network-id one, this peer \(none\)/)
    await one.open(targetOf(same), timeout())
    one.publish('head', Uint8Array.of(1))
    assert.equal((await one.fetch(targetOf(same), Uint8Array.of(1), timeout())).length, 1)
    for (const peer of [two, none]) {
      await assert.rejects(one.fetch(targetOf(peer), Uint8Array.of(1), timeout()), { code: 'ERR_NOT_ADMB_PEER' })
    }
    await until(() => heard.includes('same'))
    await sleep(1500)
    assert.deepEqual([...new Set(heard)], ['same'])
  })

  it('does not gossip between peers of different models', async () => {
    const changed = { ...hello, fields: hello.fields.map(([k, v]): [string, string] => [k, k === 'batch' ? '128' : v]) }
    const reordered = { ...hello, fields: hello.fields.toReversed() }
    const one = await peers.start()
    const others = {
      other: await peers.start({ hello: changed }),
      newer: await peers.start({ hello: { ...hello, protocol: 2 } }),
      same: await peers.start({ hello: reordered })
    }
    const heard: string[] = []
    for (const [name, peer] of Object.entries(others)) {
      peer.onGossip(() => heard.push(name))
      await one.connect(targetOf(peer), timeout())
    }
    one.publish('head', Uint8Array.of(1))
    await until(() => heard.includes('same'))
    await sleep(1500)
    assert.deepEqual([...new Set(heard)], ['same'])
  })

  it('reports the error in an address', async () => {
    const one = await peers.start()
    const is = (type: new (...args: never[]) => Error) => (error: Error) => {
      assert.ok(error instanceof type, error.stack)
      return true
    }
    const wrongId = peerIdOf(await generateIdentityKey())
    const two = await peers.start()
    const open = (address: string) => one.open({ addresses: [address] }, timeout())
    await assert.rejects(open('somewhere:4001'), is(errors.MalformedAddressError))
    await assert.rejects(open('/ip4/127.0.0.1/udp/1'), is(errors.MalformedAddressError))
    await assert.rejects(open('/ip4/127.0.0.1/tcp/1'), /connection refused/)
    await assert.rejects(open(one.addresses[0]), /it is this peer itself/)
    await assert.rejects(open(two.addresses[0].replace(two.id, wrongId)), is(errors.UnexpectedPeerError))
    await assert.rejects(one.open({ id: 'nonsense', addresses: [] }, timeout()), is(errors.MalformedPeerIdError))
    await assert.rejects(one.open({ id: wrongId, addresses: [] }, timeout()), is(errors.UnreachablePeerError))
  })

  it('reports an address that does not answer within the timeout, but does not blame the network key', async () => {
    // Like a peer that is too busy to read from its connections, or that pauses after its nonce.
    for (const [networkKey, bytes] of [
      [undefined, 0],
      [generateNetworkKey(), 0],
      [generateNetworkKey(), 24]
    ] as const) {
      const server = createServer(socket => {
        socket.on('error', () => undefined)
        if (bytes > 0) socket.write(new Uint8Array(bytes))
      })
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      try {
        const one = await peers.start({ networkKey, limits: { dialTimeoutMs: 300 } })
        const dialled = one.connect({ addresses: [`/ip4/127.0.0.1/tcp/${port}`] }, timeout())
        await assert.rejects(dialled, {
          code: 'ERR_UNREACHABLE_PEER',
          message: /did not complete the handshake in time/
        })
      } finally {
        server.close()
      }
    }
  })

  it('reports a port in use and a foreign listen address', async () => {
    const one = await peers.start()
    const [address] = one.addresses[0].split('/p2p/')
    await assert.rejects(peers.start({ listen: [address] }), (error: Error) => {
      assert.equal((error as errors.NetworkError).code, 'ERR_ADDRESS_IN_USE')
      assert.ok(error.message.startsWith(`${address} is in use`))
      return true
    })
    await assert.rejects(peers.start({ listen: ['/ip4/192.0.2.1/tcp/0'] }), errors.ListenError)
    await assert.rejects(peers.start({ listen: ['tcp:4001'] }), errors.MalformedAddressError)
    await assert.rejects(peers.start({ networkKey: Uint8Array.of(1) }), errors.DamagedKeyError)
    await assert.rejects(peers.start({ allow: new Set(['bob']) }), errors.MalformedPeerIdError)
  })

  it('releases all resources when it stops', async () => {
    const before = process.getActiveResourcesInfo().filter(name => name !== 'Timeout').length
    const [one, two] = [await peers.start({ hello }), await peers.start()]
    const [a, b] = await openSession(one, two)
    a.start(new Recorder())
    b.start(new Recorder())
    one.publish('beacon', Uint8Array.of(1))
    await Promise.all([one.stop(), two.stop(), one.stop()])
    const [address] = one.addresses
    assert.equal(address, undefined)
    await until(() => process.getActiveResourcesInfo().filter(name => name !== 'Timeout').length <= before)
  })
})

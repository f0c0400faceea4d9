/** The diagnosis of connections: each failure that is possible on loopback, and complete successes. */
import assert from 'node:assert/strict'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { diagnose, type Step } from '../../../src/network/diagnosis.js'
import { generateIdentityKey, generateNetworkKey, peerIdOf } from '../../../src/network/keys.js'
import type { NetworkOptions } from '../../../src/network/options.js'
import { hello, Peers } from '../../support/network-peers.js'

describe('a diagnosis', function () {
  this.timeout(30_000)
  const peers = new Peers()
  const servers: Server[] = []
  afterEach(async () => {
    await peers.stop()
    for (const server of servers.splice(0)) server.close()
  })

  /** Diagnosis of an address by a peer with these options. */
  async function steps(address: string, options: Partial<NetworkOptions> = {}, stepMs = 500): Promise<Step[]> {
    const from = await peers.start({ listen: [], limits: { dialTimeoutMs: 1000 }, ...options })
    return diagnose(from, address, { hello: options.hello ?? hello, isKeyed: options.networkKey !== undefined, stepMs })
  }

  /** Asserts that only the last step fails, with this detail. */
  function failsAt(found: readonly Step[], name: string, detail: RegExp): void {
    const shown = JSON.stringify(found, undefined, 1)
    assert.ok(
      found.slice(0, -1).every(({ ok }) => ok),
      shown
    )
    const last = found.at(-1)
    assert.deepEqual([last?.name, last?.ok], [name, false], shown)
    assert.match(last?.detail ?? '', detail)
    assert.ok((last?.remedy ?? '').length > 0)
  }

  async function listen(server: Server): Promise<string> {
    servers.push(server)
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    return `/ip4/127.0.0.1/tcp/${(server.address() as AddressInfo).port}`
  }

  it('passes all steps for a compatible peer', async () => {
    const networkKey = generateNetworkKey()
    for (const options of [{}, { networkKey }]) {
      const peer = await peers.start(options)
      const found = await steps(peer.addresses[0], options)
      const names = ['name', 'route', 'port', 'network key', 'noise', 'allow-list', 'protocol', 'model']
      assert.deepEqual(
        found.map(({ name, ok }) => [name, ok]),
        names.map(name => [name, true]),
        JSON.stringify(found)
      )
    }
    assert.deepEqual(peers.logs, [])
  })

  it('passes all steps through a relay and a WebSocket', async () => {
    const relay = await peers.start({ relay: true })
    const hidden = await peers.start({ listen: [`${relay.addresses[0]}/p2p-circuit`] })
    const web = await peers.start({ listen: ['/ip4/127.0.0.1/tcp/0/ws'] })
    for (const [address] of [hidden.addresses, web.addresses]) {
      const found = await steps(address, { dials: [address] })
      assert.deepEqual([found.length, found.every(({ ok }) => ok)], [8, true], JSON.stringify(found))
    }
    await hidden.stop()
    failsAt(await steps(hidden.addresses[0] ?? `${relay.addresses[0]}/p2p-circuit/p2p/${hidden.id}`), 'noise', /./)
  })

  it('name: it does not exist', async () => {
    failsAt(await steps('/dns4/no-such-host.invalid/tcp/4280'), 'name', /no-such-host.invalid cannot be resolved/)
    const { addresses } = await peers.start()
    const [named] = await steps(addresses[0].replace('/ip4/127.0.0.1', '/dns4/localhost'))
    assert.deepEqual([named.name, named.ok], ['name', true])
  })

  it('route: none', async () => {
    // A link-local address without a zone has no route on any machine.
    failsAt(await steps('/ip6/fe80::1/tcp/4280'), 'route', /no route to fe80::1 \(E\w+\)/)
  })

  it('port: connection refused', async () => {
    const peer = await peers.start()
    const [address] = peer.addresses
    await peer.stop()
    failsAt(await steps(address), 'port', /connection to 127.0.0.1 port \d+ refused/)
  })

  it('network key: at one end only, or different keys', async () => {
    const networkKey = generateNetworkKey()
    const keyed = await peers.start({ networkKey })
    const open = await peers.start()
    failsAt(await steps(keyed.addresses[0]), 'network key', /the peer has a network key, this end has none/)
    failsAt(
      await steps(open.addresses[0], { networkKey }),
      'network key',
      /the peer has no network key, this end has one/
    )
    failsAt(await steps(keyed.addresses[0], { networkKey: generateNetworkKey() }), 'network key', /differ/)
  })

  it('noise: another service or another peer listens there', async () => {
    const web = await listen(createHttpServer())
    failsAt(await steps(web), 'noise', /it sends "HTTP\/1.1 400 Bad Request"/)
    const banner = await listen(createServer(socket => socket.end('SSH-2.0-OpenSSH_9.9\r\n')))
    failsAt(await steps(banner), 'noise', /it sends "SSH-2.0-OpenSSH_9.9"/)
    const [peer, other] = [await peers.start(), peerIdOf(await generateIdentityKey())]
    failsAt(await steps(peer.addresses[0].replace(peer.id, other)), 'noise', /another peer listens/)
  })

  it('allow-list: this peer is not on it', async () => {
    const key = await generateIdentityKey()
    const peer = await peers.start({ allow: new Set([peerIdOf(key)]) })
    failsAt(await steps(peer.addresses[0]), 'allow-list', /it refused this peer/)
    assert.ok((await steps(peer.addresses[0], { privateKey: key })).every(({ ok }) => ok))
  })

  it('protocol: another version', async () => {
    const peer = await peers.start({ hello: { ...hello, protocol: 2 } })
    failsAt(await steps(peer.addresses[0]), 'protocol', /it has version 2, this program 1/)
  })

  it('model: different, or nothing to compare with', async () => {
    const peer = await peers.start({
      hello: {
        protocol: 1,
        fields: [
          ['model', 'logistic'],
          ['batch', '128']
        ]
      }
    })
    failsAt(await steps(peer.addresses[0]), 'model', /it has batch 128, the one in --dir 512/)
    const found = await steps(peer.addresses[0], { hello: { protocol: 1, fields: [] } })
    assert.match(found.at(-1)?.detail ?? '', /it learns model logistic, batch 128; pass --dir/)
    assert.ok(found.at(-1)?.ok)
  })
})

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { WebSocket } from 'ws'
import { type Attack, OpenSockets } from '../../../scripts/soak/attack.js'
import { muxerAttacks } from '../../../scripts/soak/identity-attacks.js'
import { anyAttacks, keyAttacks, openAttacks } from '../../../scripts/soak/raw-attacks.js'
import { webSocketAttacks } from '../../../scripts/soak/web-attacks.js'
import { Random } from '../../../sim/engine/random.js'
import { generateNetworkKey } from '../../../src/network/keys.js'
import type { Limits } from '../../../src/network/limits.js'
import type { Network } from '../../../src/network/network.js'
import type { Session } from '../../../src/network/session.js'
import { openSession, Peers, Recorder, until } from '../../support/network-peers.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const MIB = 2 ** 20
/** Far above the size of buffers and compiled code, far below unbounded growth. */
const maxGrowth = 64 * MIB
/** Hostile and honest connections have the same host, so the limits per host are raised. */
const limits: Partial<Limits> = { inboundPerSecond: 1_000_000, connections: 2000, dialTimeoutMs: 1000 }
const listen = ['/ip4/127.0.0.1/tcp/0', '/ip4/127.0.0.1/tcp/0/ws']

describe('a peer under hostile connections', () => {
  const peers = new Peers()

  afterEach(() => peers.stop())

  it('keeps its session with a network key, and releases the memory of hostile connections', async () => {
    const networkKey = generateNetworkKey()
    const [victim, neighbour] = await Promise.all([
      peers.start({ networkKey, limits, listen }),
      peers.start({ networkKey, limits })
    ])
    await survives(victim, neighbour, { ...anyAttacks, ...keyAttacks, ...webSocketAttacks }, 200)
  })

  it('keeps its session without a network key, and releases the memory of hostile connections', async () => {
    const [victim, neighbour] = await Promise.all([peers.start({ limits, listen }), peers.start({ limits })])
    await survives(victim, neighbour, { ...anyAttacks, ...openAttacks, ...webSocketAttacks }, 200)
    await survives(victim, neighbour, muxerAttacks, 10)
  })

  it('closes connections that do not start a libp2p handshake, long before the upgrade times out', async () => {
    const victim = await peers.start({ limits: { ...limits, dialTimeoutMs: 60_000 } })
    for (const bytes of ['GET / HTTP/1.1\r\n\r\n', '\x80'.repeat(1000), '\x13/multistream/1.0.0\n\x05/tls\n']) {
      await closedAfter(targetOf(victim).tcpPort, Buffer.from(bytes, 'latin1'))
    }
  })

  it('closes connections that send nothing when the upgrade times out', async () => {
    const victim = await peers.start({ limits, listen })
    const { tcpPort, webSocketPort } = targetOf(victim)
    await Promise.all([tcpPort, webSocketPort].map(port => closedAfter(port, new Uint8Array(0))))
  })

  it('closes WebSockets, in both directions, that do not start a libp2p handshake', async () => {
    const peer = await peers.start({ limits: { ...limits, dialTimeoutMs: 60_000 }, listen })
    const socket = new WebSocket(`ws://127.0.0.1:${targetOf(peer).webSocketPort}`)
    const closed = new Promise(resolve => socket.addEventListener('close', resolve))
    await new Promise(resolve => socket.addEventListener('open', resolve))
    socket.send('GET / HTTP/1.1')
    await closed

    const { server, address, disconnected } = await hostileServer(Buffer.from('\x82\x05hello', 'latin1'))
    await assert.rejects(peer.open({ addresses: [address] }, AbortSignal.timeout(50_000)))
    await disconnected
    server.close()
  })

  it('survives a malformed frame from a WebSocket that it dialled', async () => {
    const peer = await peers.start({ limits, listen })
    const { server, address, disconnected } = await hostileServer(Buffer.from('\xff\xff', 'latin1'))
    await assert.rejects(peer.open({ addresses: [address] }, AbortSignal.timeout(10_000)))
    await disconnected
    server.close()
  })
})

/** A server that accepts WebSockets and sends arbitrary bytes. */
async function hostileServer(bytes: Uint8Array) {
  const server = createServer()
  const disconnected = new Promise(resolve => {
    server.on('upgrade', ({ headers }, socket) => {
      const key = createHash('sha1').update(`${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      const answer = `upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${key.digest('base64')}`
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${answer}\r\n\r\n`)
      socket.on('error', () => {})
      // After the client has received the handshake.
      setTimeout(() => socket.write(bytes), 100)
      socket.resume().once('end', resolve).once('close', resolve)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = `/ip4/127.0.0.1/tcp/${(server.address() as AddressInfo).port}/ws`
  return { server, address, disconnected }
}

async function survives(
  victim: Network,
  neighbour: Network,
  attacks: Readonly<Record<string, Attack>>,
  bursts: number
): Promise<void> {
  const [session, other] = await openSession(neighbour, victim)
  const received = new Recorder()
  session.start(new Recorder())
  other.start(received)
  const random = new Random(1)
  const held = new OpenSockets()
  const round = async (times: number) => {
    for (const attack of Object.values(attacks)) {
      await inParallel(times, () => attack(targetOf(victim), random, held))
      await exchange(session, received)
    }
    held.release()
  }
  await round(Math.ceil(bursts / 10))
  const before = await stableMemory(victim)
  await round(bursts)
  const after = await stableMemory(victim)
  assert.ok(after - before < maxGrowth, `memory grew by ${((after - before) / MIB).toFixed(1)} MiB`)
  await exchange(session, received)
  assert.equal(session.ended, undefined)
  session.close('done')
}

/** A frame that the victim has to consume. */
async function exchange(session: Session, received: Recorder): Promise<void> {
  const { length } = received.frames
  await session.sendFrame(new Uint8Array(10_000))
  assert.equal(received.frames.length, length + 1)
  received.frames.length = 0
}

/** Memory in use once only the neighbour is connected. */
async function stableMemory(victim: Network): Promise<number> {
  await until(() => victim.peers.length === 1, 20_000)
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

async function inParallel(times: number, run: () => Promise<unknown>): Promise<void> {
  let left = times
  const worker = async () => {
    while (left-- > 0) await run()
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

async function closedAfter(port: number, bytes: Uint8Array): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.resume()
  socket.write(bytes)
  await new Promise(resolve => socket.once('close', resolve))
}

function targetOf({ addresses }: Network) {
  const portOf = (isWanted: (address: string) => boolean) =>
    Number(/\/tcp\/(\d+)/.exec(addresses.find(isWanted) ?? '')?.[1])
  return {
    tcpPort: portOf(address => !address.includes('/ws')),
    webSocketPort: portOf(address => address.includes('/ws')),
    httpPort: undefined
  }
}

/** Attacks with a real libp2p identity on the protocols of a peer: its own ones, gossipsub, and unknown ones. */
import { identify } from '@libp2p/identify'
import type { Connection } from '@libp2p/interface'
import { noise } from '@libp2p/noise'
import { tcp } from '@libp2p/tcp'
import { yamux } from '@libp2p/yamux'
import { multiaddr } from '@multiformats/multiaddr'
import { createLibp2p } from 'libp2p'
import type { Random } from '../../sim/engine/random.js'
import { catchUpProtocol, edgeProtocol, fetchProtocol, tagged, topicName } from '../../src/network/limits.js'
import { type Attack, garbage, type Target } from './attack.js'
import '../../src/network/polyfill.js'

const gossipProtocol = '/meshsub/1.2.0'
const streamsPerBurst = 20

export const streamAttacks: Readonly<Record<string, Attack>> = {
  'unknown protocols': (target, random) => onStreams(target, () => [`/unknown/${random.integer()}`, []]),
  'huge lengths on the protocols': (target, random) =>
    onStreams(target, tag => {
      const protocol = someProtocol(tag, random)
      const header = Buffer.alloc(8)
      header[0] = 1 + random.below(7)
      header.writeUInt32LE(random.integer(), 4)
      return [protocol, [header, garbage(random, 1000)]]
    }),
  'garbage on the protocols': (target, random) =>
    onStreams(target, tag => {
      const protocol = someProtocol(tag, random)
      return [protocol, [garbage(random, 1 + random.below(2000))]]
    }),
  'malformed gossip': (target, random) =>
    onStreams(target, () => [gossipProtocol, repeat(100, () => prefixed(garbage(random, 1 + random.below(500))))]),
  'huge gossip': (target, random) =>
    onStreams(target, () => [gossipProtocol, [Buffer.of(0xff, 0xff, 0xff, 0xff, 7), garbage(random, 60_000)]]),
  'duplicate gossip': (target, random) =>
    onStreams(target, tag => {
      const message = prefixed(field(2, unsignedMessage(tag, garbage(random, 100))))
      return [gossipProtocol, repeat(500, () => message)]
    }),
  'unsigned gossip': (target, random) =>
    onStreams(target, tag => [
      gossipProtocol,
      repeat(200, () => prefixed(field(2, unsignedMessage(tag, garbage(random, 1 + random.below(1000))))))
    ]),
  'subscriptions without end': (target, random) =>
    onStreams(target, () => [
      gossipProtocol,
      repeat(200, () => prefixed(field(1, Buffer.concat([Buffer.of(8, 1), field(2, garbage(random, 50))]))))
    ])
}

function someProtocol(tag: string, random: Random): string {
  return [edgeProtocol, fetchProtocol, tagged(catchUpProtocol, tag)][random.below(3)]
}

/** Opens streams on a connection of a new identity, as many as are accepted, and sends the messages on each. */
function onStreams(
  target: Target,
  next: (tag: string) => [protocol: string, messages: readonly Uint8Array[]]
): Promise<number> {
  return withConnection(target, async (connection, tag) => {
    let sent = 0
    await Promise.all(
      repeat(streamsPerBurst, async () => {
        const [protocol, messages] = next(tag)
        sent++
        const stream = await connection.newStream(protocol, { signal: AbortSignal.timeout(500) })
        for (const message of messages) {
          if (stream.status !== 'open') return
          stream.send(message)
          sent++
        }
      }).map(done => done.catch(() => undefined))
    )
    await new Promise(resolve => setTimeout(resolve, 20))
    return sent
  })
}

/** @param use receives the connection, and the tag of the target's hello */
async function withConnection(
  target: Target,
  use: (connection: Connection, tag: string) => Promise<number>
): Promise<number> {
  const node = await createLibp2p({
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    connectionMonitor: { enabled: false },
    services: { identify: identify() }
  })
  try {
    const address = multiaddr(`/ip4/127.0.0.1/tcp/${target.tcpPort}`)
    const connection = await node.dial(address, { signal: AbortSignal.timeout(2000) })
    const { protocols } = await node.services.identify.identify(connection)
    const [tag = ''] = protocols.flatMap(name => name.split(`${catchUpProtocol}/`)[1] ?? [])
    const made = await use(connection, tag)
    connection.abort(new Error('done'))
    return made
  } catch {
    return 0
  } finally {
    await node.stop()
  }
}

/** A message of gossipsub's protobuf without a signature. */
function unsignedMessage(tag: string, data: Uint8Array): Uint8Array {
  return Buffer.concat([field(2, data), field(4, Buffer.from(topicName('head', tag)))])
}

/** A length-delimited field of a protobuf. */
function field(number: number, bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.of((number << 3) | 2), prefixed(bytes)])
}

function prefixed(bytes: Uint8Array): Uint8Array {
  const { length } = bytes
  const prefix = length < 128 ? [length] : [(length & 127) | 128, length >>> 7]
  return Buffer.concat([Buffer.from(prefix), bytes])
}

function repeat<T>(times: number, make: () => T): T[] {
  return Array.from({ length: times }, make)
}

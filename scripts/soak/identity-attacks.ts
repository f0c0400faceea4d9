/** Attacks with a real libp2p identity: malformed and endless yamux frames below the streams. */
import '../../src/network/polyfill.js'
import type { MessageStream, StreamMuxerFactory } from '@libp2p/interface'
import { noise } from '@libp2p/noise'
import { tcp } from '@libp2p/tcp'
import { AbstractStreamMuxer } from '@libp2p/utils'
import { multiaddr } from '@multiformats/multiaddr'
import { createLibp2p } from 'libp2p'
import { type Attack, garbage, type Target } from './attack.js'

const type = { data: 0, window: 1, ping: 2, goAway: 3 } as const
const syn = 1
const framesPerBurst = 2000

export const muxerAttacks: Readonly<Record<string, Attack>> = {
  'yamux garbage': (target, random) =>
    withConnection(target, async connection => {
      for (let i = 0; i < 10; i++) send(connection, garbage(random, 1 + random.below(5000)))
      return 10
    }),
  'yamux frames with random headers': (target, random) =>
    flood(target, () => header(random.below(4), random.below(16), random.below(100), random.below(2000))),
  'yamux pings, answers unread': (target, random) =>
    flood(target, () => header(type.ping, syn, 0, random.integer()), true),
  'yamux streams without end': target => flood(target, i => header(type.window, syn, 1 + 2 * i, 0)),
  'yamux data beyond the window': (target, random) =>
    withConnection(target, async connection => {
      send(connection, header(type.data, syn, 1, 2 ** 31))
      for (let i = 0; i < 50; i++) send(connection, garbage(random, 60_000))
      return 51
    }),
  'endless lengths on streams': target =>
    withConnection(target, async connection => {
      for (let i = 0; i < 20; i++) {
        send(connection, Buffer.concat([header(type.data, syn, 1 + 2 * i, 1000), Buffer.alloc(1000, 0x80)]))
      }
      await pause(50)
      return 20
    })
}

function flood(target: Target, frame: (index: number) => Uint8Array, unread = false): Promise<number> {
  return withConnection(target, async connection => {
    if (unread) connection.pause()
    for (let i = 0; i < framesPerBurst; i += 100) {
      send(connection, Buffer.concat(Array.from({ length: 100 }, (_, j) => frame(i + j))))
    }
    await pause(20)
    return framesPerBurst
  })
}

/** An authenticated connection on which the attacker chooses the muxer's bytes. */
async function withConnection(target: Target, use: (connection: MessageStream) => Promise<number>): Promise<number> {
  const muxer = new BareMuxer()
  const node = await createLibp2p({
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [() => muxer],
    connectionMonitor: { enabled: false }
  })
  try {
    await node.dial(multiaddr(`/ip4/127.0.0.1/tcp/${target.tcpPort}`), { signal: AbortSignal.timeout(2000) })
    return muxer.connection === undefined ? 0 : await use(muxer.connection)
  } catch {
    return 0
  } finally {
    muxer.connection?.abort(new Error('done'))
    await node.stop()
  }
}

class BareMuxer implements StreamMuxerFactory {
  readonly protocol = '/yamux/1.0.0'
  connection: MessageStream | undefined

  createStreamMuxer(connection: MessageStream) {
    this.connection = connection
    return new SilentMuxer(connection, { protocol: this.protocol, name: 'silent' })
  }
}

class SilentMuxer extends AbstractStreamMuxer {
  onData(): void {}

  onCreateStream(): never {
    throw new Error('streams are made by hand')
  }
}

function send(connection: MessageStream, bytes: Uint8Array): void {
  if (connection.status === 'open') connection.send(bytes)
}

function header(kind: number, flags: number, stream: number, length: number): Uint8Array {
  const bytes = Buffer.alloc(12)
  bytes[1] = kind
  bytes.writeUInt16BE(flags, 2)
  bytes.writeUInt32BE(stream, 4)
  bytes.writeUInt32BE(length, 8)
  return bytes
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

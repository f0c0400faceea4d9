/** The two kinds of node that the exchange benchmark compares: an admb peer, and bare libp2p with the same settings. */
import '../../src/network/polyfill.js'
import type { Libp2p } from '@libp2p/interface'
import { noise } from '@libp2p/noise'
import { tcp } from '@libp2p/tcp'
import { yamux } from '@libp2p/yamux'
import { createLibp2p } from 'libp2p'
import { generateIdentityKey } from '../../src/network/keys.js'
import { createNetwork, type Network } from '../../src/network/network.js'

export const rawProtocol = '/bench/raw/1'
/** The sum of ten million parameters. */
export const frameBytes = 40_000_000
/** The sum of one million parameters. */
export const exchangeBytes = 4_000_000

export async function createBenchPeer(): Promise<Network> {
  return createNetwork({
    privateKey: await generateIdentityKey(),
    listen: ['/ip4/127.0.0.1/tcp/0'],
    hello: { protocol: 1, fields: [] },
    maxFrameBytes: 2 ** 30,
    log: (_level, message) => process.stderr.write(`${message}\n`)
  })
}

export function createBareNode(): Promise<Libp2p> {
  return createLibp2p({
    addresses: { listen: ['/ip4/127.0.0.1/tcp/0'] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux({ streamOptions: { maxStreamWindowSize: 2 ** 21, maxReadBufferLength: 2 ** 22 } })]
  })
}

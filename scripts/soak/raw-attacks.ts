/** Attacks by anyone who reaches the port: bytes on a socket, without an identity. */
import { StreamCipher } from '../../src/network/protector.js'
import { type Attack, garbage, hold, strike } from './attack.js'

const none = new Uint8Array(0)
const nonceBytes = 24
const preamble = Buffer.from('\x13/multistream/1.0.0\n\x07/noise\n')

/** With and without a network key. */
export const anyAttacks: Readonly<Record<string, Attack>> = {
  'connect and close': ({ tcpPort }) => strike(tcpPort, none, 0),
  'connect and hold': ({ tcpPort }, _random, sockets) => hold(tcpPort, none, sockets),
  garbage: ({ tcpPort }, random) => strike(tcpPort, garbage(random, 1 + random.below(2000)))
}

/** Against a peer with a network key. */
export const keyAttacks: Readonly<Record<string, Attack>> = {
  'nonce only': ({ tcpPort }, random, sockets) => hold(tcpPort, garbage(random, nonceBytes), sockets),
  'nonce then garbage': ({ tcpPort }, random) =>
    strike(tcpPort, garbage(random, nonceBytes + 1 + random.below(70_000))),
  'nonce with a wrong key': ({ tcpPort }, random) => {
    const nonce = garbage(random, nonceBytes)
    return strike(tcpPort, Buffer.concat([nonce, new StreamCipher(garbage(random, 32), nonce).xor(preamble)]))
  }
}

/** Against a peer without a network key. */
export const openAttacks: Readonly<Record<string, Attack>> = {
  'multistream garbage': ({ tcpPort }, random) =>
    strike(tcpPort, Buffer.concat([preamble.subarray(0, 20), garbage(random, 1 + random.below(2000))])),
  'endless length': ({ tcpPort }) => strike(tcpPort, Buffer.alloc(65_536, 0x80)),
  'endless length after the header': ({ tcpPort }) =>
    strike(tcpPort, Buffer.concat([preamble.subarray(0, 20), Buffer.alloc(65_536, 0x80)])),
  'noise garbage': ({ tcpPort }, random) =>
    strike(tcpPort, Buffer.concat([preamble, garbage(random, 2 + random.below(2000))])),
  'truncated noise handshake': ({ tcpPort }, random, sockets) =>
    hold(tcpPort, Buffer.concat([preamble, Buffer.of(0, 32), garbage(random, random.below(32))]), sockets),
  'noise handshake with a wrong payload': ({ tcpPort }, random) =>
    strike(
      tcpPort,
      Buffer.concat([preamble, Buffer.of(0, 32), garbage(random, 32), Buffer.of(0, 200), garbage(random, 200)])
    )
}

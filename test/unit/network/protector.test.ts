import '../../../src/network/polyfill.js'
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { MessageStream } from '@libp2p/interface'
import { multiaddrConnectionPair } from '@libp2p/utils'
import { networkKeyProtector } from '../../../src/network/protector.js'

const preamble = new TextEncoder().encode('\x13/multistream/1.0.0\n\x07/noise\n')

/** Two ends of a connection in memory, each protected with its own key. */
async function protectedPair(one: Uint8Array, other = one): Promise<[MessageStream, MessageStream]> {
  const [outbound, inbound] = multiaddrConnectionPair()
  return Promise.all([networkKeyProtector(one).protect(outbound), networkKeyProtector(other).protect(inbound)])
}

/** The bytes received by a connection, up to a number. */
function received(connection: MessageStream, length: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Uint8Array[] = []
    connection.addEventListener('message', ({ data }) => {
      parts.push(data.subarray())
      if (parts.reduce((sum, part) => sum + part.length, 0) >= length) resolve(Buffer.concat(parts))
    })
    connection.addEventListener('close', ({ error }) => reject(error ?? new Error('closed')))
  })
}

describe('a connection with a network key', () => {
  const key = randomBytes(32)

  it('carries messages of all sizes while hundreds of other connections are open', async () => {
    const pairs = await Promise.all(Array.from({ length: 600 }, () => protectedPair(key)))
    const sizes = [1, 63, 64, 65, 4096, 2 ** 20]
    for (const [index, [from, to]] of pairs.entries()) {
      const messages = [preamble, ...(index % 60 === 0 ? sizes : [1]).map(size => randomBytes(size))]
      const expected = Buffer.concat(messages)
      const arrival = received(to, expected.length)
      for (const message of messages) from.send(message)
      assert.ok(expected.equals(await arrival))
    }
  })

  it('ends when the other end has another key', async () => {
    const [from, to] = await protectedPair(key, randomBytes(32))
    const arrival = received(to, preamble.length)
    from.send(preamble)
    await assert.rejects(arrival, { name: 'ProtectionFailedError' })
    assert.equal(to.status, 'aborted')
  })
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { multiaddrConnectionPair } from '@libp2p/utils'
import { ProtocolViolationError } from '../../../src/network/errors.js'
import { defaultLimits } from '../../../src/network/limits.js'
import { boundedYamux, FrameGuard } from '../../../src/network/muxer.js'

function header(type: number, length: number): Buffer {
  const bytes = Buffer.alloc(12)
  bytes[1] = type
  bytes.writeUInt32BE(length, 8)
  return bytes
}

describe('the limits of a muxer', () => {
  it('accept frames of any size up to the window, however they are split', () => {
    const frames = Buffer.concat(
      [0, 1, 1000, 2 ** 21].map(size => Buffer.concat([header(0, size), Buffer.alloc(size)]))
    )
    for (const step of [1, 7, 65_535]) {
      const guard = new FrameGuard()
      for (let at = 0; at < frames.length; at += step) guard.push(frames.subarray(at, at + step), false)
    }
  })

  it('reject a data frame beyond the window when its header arrives', () => {
    assert.throws(() => new FrameGuard().push(header(0, 2 ** 21 + 1), false), ProtocolViolationError)
    new FrameGuard().push(header(2, 2 ** 32 - 1), false)
  })

  it('reject endless frames from a peer that reads nothing', () => {
    const pings = Buffer.concat(Array.from({ length: 1000 }, () => header(2, 1)))
    const guard = new FrameGuard()
    for (let i = 0; i < 4; i++) guard.push(pings, true)
    assert.throws(() => guard.push(pings, true), ProtocolViolationError)
    const reading = new FrameGuard()
    for (let i = 0; i < 100; i++) reading.push(pings, i % 4 !== 0)
  })
})

describe('a stream of a muxer', () => {
  it('answers small messages with few window updates, and delivers more than a window', async () => {
    const connections = multiaddrConnectionPair()
    const [opener, acceptor] = connections.map(connection =>
      boundedYamux(defaultLimits)().createStreamMuxer(connection)
    )
    try {
      let frames = 0
      connections[0].addEventListener('message', () => frames++)
      let received = 0
      acceptor.addEventListener('stream', ({ detail }) => {
        detail.addEventListener('message', ({ data }) => {
          received += data.byteLength
        })
      })
      const arrived = async (bytes: number) => {
        for (let wait = 0; received < bytes && wait < 5000; wait++) await sleep(1)
        assert.ok(received >= bytes, `${received} of ${bytes} bytes`)
      }
      const stream = await opener.createStream()
      for (let sent = 0; sent < 200; sent++) stream.send(new Uint8Array(100))
      await arrived(20_000)
      // The answer to the opening of the stream, and a ping.
      assert.ok(frames <= 4, `${frames} frames`)
      for (let sent = 0; sent < 64; sent++)
        if (!stream.send(new Uint8Array(65_536))) await once(stream as unknown as EventTarget, 'drain')
      await arrived(20_000 + 64 * 65_536)
    } finally {
      for (const connection of connections) connection.abort(new Error('the test is over'))
    }
  })
})

import assert from 'node:assert/strict'
import { RateLimiter } from '../../../src/base/rate-limiter.js'
import { ChunkChannel } from '../../../src/network/chunk-channel.js'
import { SendWindow } from '../../../src/network/chunk-writer.js'
import { ProtocolViolationError } from '../../../src/network/errors.js'
import { sendRequest, serveRequest } from '../../../src/network/fetch.js'
import { defaultLimits } from '../../../src/network/limits.js'
import { Session } from '../../../src/network/session.js'
import { Recorder } from '../../support/network-peers.js'
import { type LineOptions, SlowLine } from '../../support/slow-line.js'

interface Transfer {
  /** Time of the transfer in ms, Infinity if it did not end in `limit`. */
  readonly took: number
  /** Delay of each heartbeat, and the time between two arrivals of any bytes, in ms. */
  readonly delays: readonly number[]
}

/** Sends a frame over a line while both ends send a heartbeat every 250 ms. */
async function transfer(bytes: number, options: LineOptions, limit: number): Promise<Transfer> {
  const line = new SlowLine(options)
  const now = () => line.now
  const sessions = line.ends.map((stream, id) => {
    return new Session(new ChunkChannel(stream, 1000, now), {
      id,
      peer: 'other',
      outbound: id === 0,
      maxFrameBytes: bytes,
      controlRate: new RateLimiter(500, now),
      onViolation: reason => assert.fail(reason),
      onClosed: () => undefined
    })
  })
  const delays: number[] = []
  const [atA, atB] = sessions.map(() => new Recorder())
  for (const recorder of [atA, atB]) {
    recorder.control = message => delays.push(line.now - new Float64Array(message.buffer)[0])
  }
  sessions[0].start(atA)
  sessions[1].start(atB)
  const beat = () => {
    for (const session of sessions) session.sendControl(new Uint8Array(new Float64Array([line.now]).buffer))
    line.queue.push(line.now + 250, beat)
  }
  beat()
  let took = Number.POSITIVE_INFINITY
  void sessions[0].sendFrame(new Uint8Array(bytes)).then(() => {
    took = line.now
  })
  await line.run(limit, () => Number.isFinite(took))
  return { took, delays }
}

describe('a session on a slow line', () => {
  it('delivers 12 MB at 1 Mbit/s while heartbeats arrive within a second', async () => {
    const { took, delays } = await transfer(12e6, { rate: 125_000, delay: 20 }, 120_000)
    assert.ok(took < 105_000, `it took ${took} ms; the line alone needs 96 s`)
    assert.ok(delays.length > 700)
    assert.ok(Math.max(...delays) < 1000, `a heartbeat took ${Math.max(...delays)} ms`)
  })

  for (const [name, rate, delay, burst] of [
    ['128 kbit/s', 16_000, 50, 0],
    ['1 Mbit/s, the first 100 kB of which are faster', 125_000, 1, 100_000],
    ['20 Mbit/s, a round trip of 600 ms', 2_500_000, 300, 0],
    ['1 Gbit/s', 125_000_000, 1, 0]
  ] as const) {
    it(`uses most of a line of ${name}`, async () => {
      const bytes = Math.min(40e6, 60 * rate)
      const alone = (1000 * bytes) / rate
      const { took, delays } = await transfer(bytes, { rate, delay, burst }, 10 * alone + 10_000)
      // The window grows to that of the line in some round trips.
      assert.ok(took < 1.15 * alone + 24 * delay + 500, `${took} ms; the line alone needs ${alone} ms`)
      assert.ok(Math.max(...delays) < 1500 + delay, `a heartbeat took ${Math.max(...delays)} ms`)
    })
  }
})

describe('a fetch on a slow line', () => {
  const limits = { ...defaultLimits, fetchSilenceMs: 1500 }
  /** Passes virtual time with real time, ten times as fast, because the limit is a timer. */
  const fetch = async (response: Promise<Uint8Array>, rate: number) => {
    const line = new SlowLine({ rate, delay: 5 })
    serveRequest(line.ends[1], 'a', () => response, 1e6, limits, assert.fail)
    const fetched = sendRequest(line.ends[0], 'b', Uint8Array.of(1), 1e6, limits, AbortSignal.timeout(20_000))
    let ended = false
    fetched.finally(() => (ended = true)).catch(() => undefined)
    const start = performance.now()
    while (!ended) {
      await line.run(10 * (performance.now() - start), () => ended)
      await new Promise(resolve => setTimeout(resolve, 1))
    }
    return fetched
  }

  it('takes as long as it makes progress', async () => {
    const bytes = new Uint8Array(200_000).fill(7)
    assert.deepEqual(await fetch(Promise.resolve(bytes), 10_000), bytes)
  })

  it('fails when nothing arrives', async () => {
    await assert.rejects(fetch(new Promise(() => undefined), 1e6), /nothing arrived for 1.5 s/)
  })
})

describe('the window of unacknowledged bytes', () => {
  it('rejects acknowledgements of bytes that were not sent, and of nothing new', () => {
    const window = new SendWindow(() => 0)
    window.sent(1000)
    assert.throws(() => window.receive(1001), ProtocolViolationError)
    window.receive(400)
    assert.throws(() => window.receive(400), ProtocolViolationError)
    window.receive(1000)
  })

  it('follows the rate of the line down to its lower bound, and up again', () => {
    let now = 0
    const window = new SendWindow(() => now)
    let total = 0
    const line = (bytesPerMs: number) => {
      for (let i = 0; i < 200; i++) {
        let sent = 0
        for (let { room } = window; room > 0; { room } = window) {
          window.sent(room)
          sent += room
        }
        now += sent / bytesPerMs
        total += sent
        window.receive(total)
      }
      return window.bytes
    }
    const fast = line(1000)
    assert.ok(fast >= 400_000 && fast <= 500_000, String(fast))
    assert.equal(line(1), 16 * 1024)
    assert.ok(line(1000) >= 400_000)
  })
})

// Must be imported before libp2p, for Node.js 20.
import '../../../src/network/polyfill.js'
import assert from 'node:assert/strict'
import { noise } from '@libp2p/noise'
import { tcp } from '@libp2p/tcp'
import { yamux } from '@libp2p/yamux'
import { multiaddr } from '@multiformats/multiaddr'
import { createLibp2p } from 'libp2p'
import { IncompatiblePeerError, SessionClosedError } from '../../../src/network/errors.js'
import { hello, openSession, Peers, pattern, Recorder, targetOf, timeout, until } from '../../support/network-peers.js'

describe('a session between two peers', () => {
  const peers = new Peers()
  afterEach(() => peers.stop())

  it('transfers frames of all sizes in both directions at once', async () => {
    const [a, b] = await openSession(await peers.start(), await peers.start())
    const [atA, atB] = [new Recorder(), new Recorder()]
    a.start(atA)
    b.start(atB)
    for (const length of [0, 1, 5_000_000, 64_000_000]) {
      const [fromA, fromB] = [pattern(length, 1), pattern(length, 2)]
      const cut = Math.floor(length / 3)
      await Promise.all([a.sendFrame([fromA.subarray(0, cut), fromA.subarray(cut)]), b.sendFrame(fromB)])
      assert.ok(Buffer.from(fromA.buffer).equals(atB.frames.pop() as Uint8Array))
      assert.ok(Buffer.from(fromB.buffer).equals(atA.frames.pop() as Uint8Array))
    }
  })

  it('delivers control messages in order, ahead of the rest of a large frame', async () => {
    const [a, b] = await openSession(await peers.start(), await peers.start())
    const atB = new Recorder()
    let controlsBeforeFrame = -1
    atB.frame = () => {
      controlsBeforeFrame = atB.controls.length
    }
    a.start(new Recorder())
    b.start(atB)
    const sent = a.sendFrame(pattern(40_000_000, 3))
    for (let i = 0; i < 20; i++) a.sendControl(Uint8Array.of(i))
    await sent
    assert.equal(controlsBeforeFrame, 20)
    assert.deepEqual(
      atB.controls.map(message => message[0]),
      Array.from({ length: 20 }, (_, i) => i)
    )
  })

  it('delivers messages about statuses, and closes if one is invalid', async () => {
    const [a, b] = await openSession(await peers.start(), await peers.start())
    const atB = new Recorder()
    a.start(new Recorder())
    b.start(atB)
    a.sendStatus(Uint8Array.of(1, 2))
    await until(() => atB.statuses.length === 1)
    assert.deepEqual([...atB.statuses[0]], [1, 2])
    assert.throws(() => a.sendStatus(new Uint8Array(64 * 1024 + 1)), RangeError)
    atB.status = () => {
      throw new Error('not compressed JSON')
    }
    a.sendStatus(Uint8Array.of(3))
    assert.match(await atB.closed, /invalid status message: not compressed JSON/)
  })

  it('delays frames for a slow reader, but not control messages', async () => {
    const [a, b] = await openSession(await peers.start(), await peers.start())
    const atB = new Recorder()
    let done: (() => void) | undefined
    atB.frame = () => new Promise<void>(resolve => (done = resolve))
    a.start(new Recorder())
    b.start(atB)
    let consumed = false
    const sent = a.sendFrame(pattern(3_000_000, 4)).then(() => {
      consumed = true
    })
    await assert.rejects(a.sendFrame(new Uint8Array(1)), /the last frame has not been consumed/)
    a.sendControl(Uint8Array.of(1))
    await until(() => atB.controls.length === 1 && done !== undefined)
    await new Promise(resolve => setTimeout(resolve, 100))
    assert.equal(consumed, false)
    assert.equal(a.writable, false)
    done?.()
    await sent
    assert.equal(a.writable, true)
  })

  it('tells when the frame that is arriving has been consumed, fragments included', async () => {
    const [a, b] = await openSession(await peers.start(), await peers.start())
    const atB = new Recorder()
    a.start(new Recorder())
    b.start(atB)
    await b.arrived()
    await a.sendFragment(pattern(1_000_000, 1))
    await until(() => atB.fragments.length === 1)
    let arrived = false
    const waiting = b.arrived().then(() => (arrived = true))
    await new Promise(resolve => setImmediate(resolve))
    assert.equal(arrived, false)
    await a.sendFrame(Uint8Array.of(1))
    await waiting
    await b.arrived()
    await a.sendFragment(pattern(1000, 1))
    await until(() => atB.fragments.length === 2)
    const ended = b.arrived()
    a.close('enough')
    await ended
  })

  it('delivers fragments before their frame, in order, under the grant of that frame', async () => {
    const [a, b] = await openSession(await peers.start(), await peers.start())
    const atB = new Recorder()
    let done = () => {}
    atB.frame = frame => {
      atB.frames.push(frame)
      return new Promise<void>(resolve => (done = resolve))
    }
    a.start(new Recorder())
    b.start(atB)
    const fragments = [1_500_000, 0, 1, 3_000_000].map((length, i) => pattern(length, i + 1))
    await a.sendFragment(fragments[0])
    await until(() => atB.fragments.length === 1)
    const rest = fragments.slice(1).map(fragment => a.sendFragment(fragment))
    let consumed = false
    const sent = a.sendFrame(Uint8Array.of(9)).then(() => {
      consumed = true
    })
    await Promise.all(rest)
    await until(() => atB.frames.length === 1)
    for (const [i, fragment] of fragments.entries())
      assert.ok(Buffer.from(fragment).equals(atB.fragments[i]), `fragment ${i}`)
    assert.equal(consumed, false)
    await assert.rejects(a.sendFragment(new Uint8Array(1)), /the last frame has not been consumed/)
    done()
    await sent
    await a.sendFragment(new Uint8Array(1))
    b.close('enough')
    await assert.rejects(a.sendFragment(pattern(40_000_000, 7)), SessionClosedError)
  })

  it('ends when fragments and their frame exceed the maximum frame size', async () => {
    for (const lengths of [
      [600, 401],
      [600, 400, 1]
    ]) {
      const [one, two] = [await peers.start(), await peers.start({ maxFrameBytes: 1000 })]
      const [a, b] = await openSession(one, two)
      const atB = new Recorder()
      a.start(new Recorder())
      b.start(atB)
      await a.sendFragment(new Uint8Array(lengths[0]))
      // A resolved promise does not mean that the fragment was accepted.
      for (const length of lengths.slice(1, -1)) await a.sendFragment(new Uint8Array(length))
      await assert.rejects(a.sendFrame(new Uint8Array(lengths.at(-1) as number)), SessionClosedError)
      assert.match(await atB.closed, /bytes of fragments and \d+ more; the maximum is 1000/)
    }
    const [a, b] = await openSession(await peers.start(), await peers.start({ maxFrameBytes: 1000 }))
    a.start(new Recorder())
    b.start(new Recorder())
    for (let frame = 0; frame < 3; frame++) {
      await a.sendFragment(new Uint8Array(600))
      await a.sendFrame(new Uint8Array(400))
    }
    assert.equal(a.ended, undefined)
  })

  it('blocks the sender until it is started, without loss', async () => {
    const [a, b] = await openSession(await peers.start(), await peers.start())
    a.start(new Recorder())
    const frame = pattern(20_000_000, 5)
    const before = process.memoryUsage().arrayBuffers
    const sent = a.sendFrame(frame)
    await new Promise(resolve => setTimeout(resolve, 300))
    const held = process.memoryUsage().arrayBuffers - before
    assert.ok(held < 12_000_000, `${held} bytes are held for a reader that has not started`)
    const atB = new Recorder()
    b.start(atB)
    await sent
    assert.ok(Buffer.from(frame.buffer).equals(atB.frames[0]))
  })

  it('reports the reason of its end once at both ends, and rejects the pending frame', async () => {
    const [a, b] = await openSession(await peers.start(), await peers.start())
    const [atA, atB] = [new Recorder(), new Recorder()]
    a.start(atA)
    b.start(atB)
    const sent = a.sendFrame(pattern(40_000_000, 6))
    b.close('moved to another parent')
    await assert.rejects(sent, SessionClosedError)
    assert.equal(await atB.closed, 'moved to another parent')
    assert.equal(await atA.closed, 'closed by the other end: moved to another parent')
    assert.equal(a.writable, false)
    await assert.rejects(a.sendFrame(new Uint8Array(1)), SessionClosedError)
    a.sendControl(Uint8Array.of(1))
  })

  it('ends when the other peer stops, even before it is started', async () => {
    const [one, two] = [await peers.start(), await peers.start()]
    const [a, b] = await openSession(one, two)
    const [c] = await openSession(one, two)
    const atA = new Recorder()
    a.start(atA)
    await two.stop()
    assert.match(await atA.closed, /this peer stops/)
    assert.notEqual(b.ended, undefined)
    await until(() => c.ended !== undefined)
    const atC = new Recorder()
    c.start(atC)
    await atC.closed
  })

  it('ends at both peers, with a ban and a log line, when a frame is too large', async () => {
    const [one, two] = [await peers.start(), await peers.start({ maxFrameBytes: 1000 })]
    const [a, b] = await openSession(one, two)
    const [atA, atB] = [new Recorder(), new Recorder()]
    a.start(atA)
    b.start(atB)
    await assert.rejects(a.sendFrame(new Uint8Array(1001)), SessionClosedError)
    assert.match(await atB.closed, /a frame of 1001 bytes is announced; the maximum is 1000/)
    assert.ok(peers.logs.some(line => line.includes(one.id) && line.includes('1001 bytes')))
    await assert.rejects(two.open(targetOf(one), timeout()), /banned for/)
  })

  it('ends when a handler rejects a frame or a control message', async () => {
    const [one, two] = [await peers.start(), await peers.start()]
    const [a, b] = await openSession(one, two)
    const atB = new Recorder()
    atB.frame = () => Promise.reject(new Error('coverage of 3 peers with 4 counts'))
    a.start(new Recorder())
    b.start(atB)
    await assert.rejects(a.sendFrame(new Uint8Array(4)), SessionClosedError)
    assert.equal(await atB.closed, 'invalid frame: coverage of 3 peers with 4 counts')
    assert.ok(peers.logs.some(line => line.includes(one.id) && line.includes('invalid frame')))
    const [c, d] = await openSession(await peers.start(), two)
    const atD = new Recorder()
    atD.control = () => {
      throw new Error('unknown kind 9')
    }
    c.start(new Recorder())
    d.start(atD)
    c.sendControl(Uint8Array.of(9))
    assert.equal(await atD.closed, 'invalid control message: unknown kind 9')
  })

  it('ends when the other end exceeds the rate limit', async () => {
    const [a, b] = await openSession(await peers.start(), await peers.start({ limits: { controlPerSecond: 10 } }))
    const atB = new Recorder()
    a.start(new Recorder())
    b.start(atB)
    for (let i = 0; i < 40; i++) a.sendControl(Uint8Array.of(i))
    assert.equal(await atB.closed, 'too many control messages')
    assert.equal(atB.controls.length, 20)
  })

  it('is refused by both ends if they are incompatible, each reporting the field and both values', async () => {
    const other = { ...hello, fields: [hello.fields[0], ['batch', '256'] as [string, string]] }
    const [one, two] = [await peers.start(), await peers.start({ hello: other })]
    let sessions = 0
    two.onSession(() => sessions++)
    await assert.rejects(one.open(targetOf(two), timeout()), (error: IncompatiblePeerError) => {
      assert.ok(error instanceof IncompatiblePeerError)
      const line = `peer ${two.id} has batch 256, this peer 512: start both with the same --batch`
      assert.equal(error.message, line)
      return true
    })
    const line = `peer ${one.id} has batch 512, this peer 256: start both with the same --batch`
    await until(() => peers.logs.some(log => log.includes(line)))
    assert.equal(sessions, 0)
  })

  it('is not opened by a peer that sends garbage or no hello', async () => {
    const options = { transports: [tcp()], connectionEncrypters: [noise()], streamMuxers: [yamux()] }
    const stranger = await createLibp2p({ ...options, addresses: { listen: ['/ip4/127.0.0.1/tcp/0'] } })
    try {
      const peer = await peers.start({ limits: { helloTimeoutMs: 300 } })
      await assert.rejects(
        peer.open({ addresses: stranger.getMultiaddrs().map(String) }, timeout()),
        /does not support \/admb\/edge\/1/
      )
      const address = multiaddr(peer.addresses[0])
      const silent = await stranger.dialProtocol(address, '/admb/edge/1')
      await new Promise(resolve => silent.addEventListener('close', resolve))
      assert.ok(peers.logs.some(line => line.includes('sent no hello within 300 ms')))
      const garbage = await stranger.dialProtocol(address, '/admb/edge/1')
      const ended = new Promise(resolve => garbage.addEventListener('close', resolve))
      garbage.send(pattern(1000, 7))
      await until(() => peers.logs.some(line => line.includes('unknown chunk header')))
      await ended
      await assert.rejects(
        peer.connect({ addresses: stranger.getMultiaddrs().map(String) }, timeout()),
        /is denied \(banned/
      )
    } finally {
      await stranger.stop()
    }
  })
})

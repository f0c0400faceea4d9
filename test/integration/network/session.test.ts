import assert from 'node:assert/strict'
import { openSession, Peers, pattern, Recorder } from './harness.js'

describe('a session between two peers', () => {
  const peers = new Peers()
  afterEach(() => peers.stop())

  it('carries frames of all sizes both ways at once, bit by bit', async () => {
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

  it('delivers control messages in order, past the rest of a big frame', async () => {
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
})

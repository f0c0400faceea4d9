import assert from 'node:assert/strict'
import fc from 'fast-check'
import { FrameAssembler } from '../../../src/network/chunks.js'
import { ProtocolViolationError } from '../../../src/network/errors.js'

describe('a frame assembler', () => {
  it('joins buffers of any size into one new buffer', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { minLength: 1 }), pieces => {
        const whole = Buffer.concat(pieces)
        const assembler = new FrameAssembler(whole.length)
        assert.equal(assembler.begin(whole.length), undefined)
        const results = pieces.map(piece => assembler.append(piece))
        const frame = results.pop() as Uint8Array
        assert.ok(results.every(result => result === undefined))
        assert.ok(whole.equals(frame))
        assert.equal(frame.buffer.byteLength, frame.length)
      })
    )
  })

  it('returns an empty frame at once, and accepts the next', () => {
    const assembler = new FrameAssembler(10)
    assert.equal(assembler.begin(0)?.length, 0)
    assert.equal(assembler.begin(1), undefined)
    assert.deepEqual([...(assembler.append(Uint8Array.of(9)) as Uint8Array)], [9])
    assert.equal(assembler.begin(2), undefined)
  })

  it('grows over its first megabytes', () => {
    const assembler = new FrameAssembler(50_000_000)
    assembler.begin(40_000_000)
    const piece = new Uint8Array(10_000_000).map((_, i) => i)
    for (let i = 0; i < 3; i++) assert.equal(assembler.append(piece), undefined)
    const frame = assembler.append(piece) as Uint8Array
    assert.ok(Buffer.concat([piece, piece, piece, piece]).equals(frame))
  })

  it('allocates by the data received, not by the announced length', () => {
    const before = process.memoryUsage().arrayBuffers
    const assemblers = Array.from({ length: 4 }, () => new FrameAssembler(2 ** 30))
    for (const assembler of assemblers) assembler.begin(2 ** 30)
    const allocated = process.memoryUsage().arrayBuffers - before
    assert.ok(allocated <= 2 ** 26, `${allocated} bytes`)
    assert.throws(() => assemblers[0].begin(1), /a frame starts inside another/)
  })

  it('rejects data that was not announced', () => {
    const assembler = new FrameAssembler(10)
    assert.throws(() => assembler.append(Uint8Array.of(1)), ProtocolViolationError)
    assert.throws(() => assembler.begin(11), /a frame of 11 bytes is announced; the maximum is 10/)
    assert.throws(() => assembler.begin(2 ** 70), ProtocolViolationError)
    assembler.begin(2)
    assert.throws(() => assembler.append(new Uint8Array(3)), /more data than the announced 2 bytes/)
  })
})

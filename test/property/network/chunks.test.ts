import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  ChunkDecoder,
  ChunkKind,
  type ChunkSink,
  decodeCount,
  encodeChunk,
  encodeCount
} from '../../../src/network/chunks.js'
import { ProtocolViolationError } from '../../../src/network/errors.js'
import { maxControlBytes, maxDataBytes } from '../../../src/network/limits.js'

/** Decodes segments; adjacent data is joined, so that the result does not depend on the split. */
function decode(pieces: readonly Uint8Array[]): string[] {
  const found: string[] = []
  const decoder = new ChunkDecoder()
  const sink: ChunkSink = {
    chunk: (kind, payload) => found.push(`${kind}:${Buffer.from(payload).toString('hex')}`),
    data: bytes => {
      const hex = Buffer.from(bytes).toString('hex')
      if (found.at(-1)?.startsWith('data:')) found[found.length - 1] += hex
      else found.push(`data:${hex}`)
    }
  }
  for (const piece of pieces)
    assert.equal(
      decoder.push(piece, sink, () => true),
      piece.length
    )
  return found
}

function cut(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const ends = [...cuts.map(at => at % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  return ends.map((end, i) => bytes.slice(i === 0 ? 0 : ends[i - 1], end))
}

const small = fc.record({ kind: fc.constant(ChunkKind.control), payload: fc.uint8Array({ maxLength: 40 }) })
const data = fc.record({ kind: fc.constant(ChunkKind.data), payload: fc.uint8Array({ minLength: 1, maxLength: 40 }) })

describe('chunk framing', () => {
  it('decodes the same chunks however the bytes are split', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(small, data)), fc.array(fc.nat()), (chunks, cuts) => {
        const bytes = Buffer.concat(chunks.map(({ kind, payload }) => encodeChunk(kind, payload)))
        const expected: string[] = []
        for (const { kind, payload } of chunks) {
          const hex = Buffer.from(payload).toString('hex')
          if (kind !== ChunkKind.data) expected.push(`${kind}:${hex}`)
          else if (expected.at(-1)?.startsWith('data:')) expected[expected.length - 1] += hex
          else expected.push(`data:${hex}`)
        }
        assert.deepEqual(decode(cut(bytes, cuts)), expected)
      })
    )
  })

  it('throws only protocol violations for arbitrary bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), bytes => {
        try {
          decode([bytes])
        } catch (error) {
          assert.ok(error instanceof ProtocolViolationError)
        }
      })
    )
  })

  it('has the documented layout', () => {
    assert.deepEqual([...encodeChunk(ChunkKind.control, Uint8Array.of(7, 8))], [2, 0, 0, 0, 2, 0, 0, 0, 7, 8])
    assert.deepEqual([...encodeCount(ChunkKind.frame, 0x1_0203_0405)], [3, 0, 0, 0, 8, 0, 0, 0, 5, 4, 3, 2, 1, 0, 0, 0])
    assert.equal(decodeCount(Uint8Array.of(5, 4, 3, 2, 1, 0, 0, 0)), 0x1_0203_0405)
  })

  it('rejects lengths above the limit before reading the payload, at both ends', () => {
    const header = (kind: number, length: number) => {
      const bytes = new Uint8Array(8)
      new DataView(bytes.buffer).setUint32(0, kind, true)
      new DataView(bytes.buffer).setUint32(4, length, true)
      return bytes
    }
    assert.throws(() => decode([header(ChunkKind.control, maxControlBytes + 1)]), /65537 bytes; the maximum is 65536/)
    assert.throws(() => decode([header(ChunkKind.data, maxDataBytes + 1)]), ProtocolViolationError)
    assert.throws(() => decode([header(ChunkKind.consumed, 1)]), ProtocolViolationError)
    assert.throws(() => decode([header(ChunkKind.control | 0x100, 0)]), /unknown chunk header 0201/)
    assert.throws(() => decode([header(ChunkKind.announcement, 513)]), /513 bytes; the maximum is 512/)
    assert.throws(() => decode([header(11, 0)]), /unknown chunk header/)
    assert.throws(() => encodeChunk(ChunkKind.control, new Uint8Array(maxControlBytes + 1)), RangeError)
  })

  it('stops between chunks on request, and continues from there', () => {
    const bytes = Buffer.concat([1, 2, 3].map(n => encodeChunk(ChunkKind.control, Uint8Array.of(n))))
    const decoder = new ChunkDecoder()
    const found: number[] = []
    const sink: ChunkSink = { chunk: (_, payload) => found.push(payload[0]), data: () => assert.fail() }
    const taken = decoder.push(bytes, sink, () => found.length < 1)
    assert.deepEqual([taken, found], [9, [1]])
    decoder.push(bytes.subarray(taken), sink, () => true)
    assert.deepEqual(found, [1, 2, 3])
  })
})

/** Long arrays in other memory than the heap. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { copyBlock, copyBytes, newBlock, newBuffer, useMemory } from '../../../src/numeric/memory.js'

const LONG = 1 << 16

describe('long arrays', () => {
  let provided: ArrayBuffer[]

  beforeEach(() => {
    provided = []
    useMemory(bytes => {
      const buffer = new ArrayBuffer(bytes)
      provided.push(buffer)
      return buffer
    })
  })
  afterEach(() => useMemory(undefined))

  it('are in the provided memory, and shorter ones on the heap', () => {
    const arrays = [newBlock(LONG), copyBlock(new Float32Array(LONG)), copyBytes(new Uint8Array(4 * LONG))]
    assert.deepEqual(
      [...arrays.map(({ buffer }) => buffer), newBuffer(4 * LONG)],
      provided,
      'in the order of allocation'
    )
    for (const short of [newBlock(8), copyBlock(new Float32Array(8)), copyBytes(new Uint8Array(8))])
      assert.ok(!provided.includes(short.buffer))
  })

  it('stay on the heap if no memory is provided for them', () => {
    useMemory(() => undefined)
    assert.deepEqual(newBlock(LONG), new Float32Array(LONG))
  })

  it('are copies of all elements, also of a part of an array', () => {
    fc.assert(
      fc.property(fc.nat(LONG), fc.nat(LONG), fc.boolean(), (from, length, isProvided) => {
        if (!isProvided) useMemory(undefined)
        const all = Uint8Array.from({ length: 4 * (from + length) }, (_, i) => i % 251)
        const [bytes, floats] = [all.subarray(4 * from), new Float32Array(all.buffer).subarray(from)]
        const copies = [copyBytes(bytes), copyBlock(floats)]
        all.fill(0)
        for (const copy of copies) {
          const read = new Uint8Array(copy.buffer, copy.byteOffset, copy.byteLength)
          assert.ok(read.every((byte, i) => byte === (4 * from + i) % 251))
        }
      }),
      { numRuns: 20 }
    )
  })
})

import assert from 'node:assert/strict'
import fc from 'fast-check'
import { ByteWriter } from '../../../src/base/bytes.js'

class Writer extends ByteWriter {
  finish(): Uint8Array {
    return this.result()
  }

  finishExactly(): Uint8Array {
    return this.copy()
  }
}

describe('byte writers', () => {
  it('do not disturb each other, in whatever order they are created, written and finished', () => {
    const write = fc.record({ writer: fc.nat({ max: 3 }), bytes: fc.uint8Array({ maxLength: 20_000 }) })
    const capacities = fc.array(fc.constantFrom(0, 256, 16_384, 40_000), { minLength: 4, maxLength: 4 })
    fc.assert(
      fc.property(
        capacities,
        fc.array(write, { maxLength: 12 }),
        fc.array(fc.nat({ max: 3 })),
        (sizes, writes, ends) => {
          const writers = new Map<number, Writer>()
          const expected = new Map<number, Uint8Array[]>()
          const results: [Uint8Array, Uint8Array][] = []
          const end = (which: number) => {
            const writer = writers.get(which)
            if (writer === undefined) return
            results.push([
              which % 2 ? writer.finish() : writer.finishExactly(),
              Buffer.concat(expected.get(which) ?? [])
            ])
            writers.delete(which)
            expected.delete(which)
          }
          for (const [step, { writer: which, bytes }] of writes.entries()) {
            const writer = writers.get(which) ?? new Writer(sizes[which])
            writers.set(which, writer)
            writer.raw(bytes)
            expected.set(which, [...(expected.get(which) ?? []), bytes])
            if (step < ends.length) end(ends[step])
          }
          for (const which of [...writers.keys()]) end(which)
          for (const [written, meant] of results) assert.ok(Buffer.from(written).equals(meant))
        }
      )
    )
  })
})

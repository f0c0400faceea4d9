/** Ranges of an arena are aligned, do not overlap, and can all be allocated again. */
import { equal, ok } from 'node:assert/strict'
import fc from 'fast-check'
import { Arena, type Range } from '../../../src/l2l/store/arena.js'
import { PAGE_BYTES } from '../../../src/l2l/store/layer-file.js'

describe('an arena', () => {
  it('allocates what is free, without overlaps', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.array(fc.record({ bytes: fc.integer({ min: 1, max: 5 * PAGE_BYTES }), frees: fc.nat(9) }), {
          maxLength: 40
        }),
        (pages, steps) => {
          const arena = new Arena(pages * PAGE_BYTES)
          const held: Range[] = []
          for (const { bytes, frees } of steps) {
            const range = arena.allocate(bytes)
            if (range !== undefined) {
              const { memory, offset, bytes: size } = range
              equal(offset % PAGE_BYTES, 0)
              ok(size >= bytes && offset + size <= Math.min(pages * PAGE_BYTES, arena.memories[memory].byteLength))
              for (const other of held) ok(other.offset + other.bytes <= offset || offset + size <= other.offset)
              held.push(range)
            } else ok(held.length > 0 || bytes > pages * PAGE_BYTES)
            if (frees < held.length) arena.release(held.splice(frees, 1)[0])
          }
          for (const range of held.splice(0)) arena.release(range)
          // What was released is one range again.
          equal(arena.allocate(pages * PAGE_BYTES)?.offset, 0)
          equal(arena.allocate(1), undefined)
        }
      )
    )
  })
})

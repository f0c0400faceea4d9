/** Gradient slots: their number, and waiting for the previous owner. */
import assert from 'node:assert/strict'
import { GradientSlots } from '../../../src/l2l/training/block-memory.js'

describe('gradient slots', () => {
  const acquireAll = (slots: GradientSlots, blocks: readonly number[]) =>
    blocks.map(block => {
      const waited: number[] = []
      const slot = slots.acquire(block, before => waited.push(before))
      return [slot, ...waited]
    })

  it('for large layers number one more than the threads, and are acquired in turn', () => {
    const lengths: number[] = []
    const slots = new GradientSlots([2 ** 28, 5, 2 ** 20, 7], 1, length => {
      lengths.push(length)
      return new Float32Array(1)
    })
    assert.deepEqual(lengths, [2 ** 28, 2 ** 28])
    assert.deepEqual(acquireAll(slots, [3, 2, 1, 0, 3]), [[0], [1], [0, 3], [1, 2], [0, 1]])
  })

  it('for small layers number one per layer, or one in total without threads', () => {
    const allocate = (length: number) => new Float32Array(length)
    const many = new GradientSlots([3, 9, 4], 2, allocate)
    assert.deepEqual(
      many.memory.map(({ length }) => length),
      [9, 9, 9]
    )
    const one = new GradientSlots([3, 9, 4], 0, allocate)
    assert.equal(one.memory.length, 1)
    assert.deepEqual(acquireAll(one, [2, 1]), [[0], [0, 2]])
  })
})

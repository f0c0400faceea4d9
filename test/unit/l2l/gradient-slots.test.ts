/** Slots for gradients: as many as help, and none is taken before what was in it is done. */
import assert from 'node:assert/strict'
import { GradientSlots } from '../../../src/l2l/training/block-memory.js'

describe('slots for gradients', () => {
  const waitsOf = (slots: GradientSlots, blocks: readonly number[]) =>
    blocks.map(block => {
      const waited: number[] = []
      const slot = slots.acquire(block, before => waited.push(before))
      return [slot, ...waited]
    })

  it('of large layers are one more than the threads, and are waited for in turn', () => {
    const lengths: number[] = []
    const slots = new GradientSlots([2 ** 28, 5, 2 ** 20, 7], 1, length => {
      lengths.push(length)
      return new Float32Array(1)
    })
    assert.deepEqual(lengths, [2 ** 28, 2 ** 28])
    assert.deepEqual(waitsOf(slots, [3, 2, 1, 0, 3]), [[0], [1], [0, 3], [1, 2], [0, 1]])
  })

  it('of small layers are one each, and one in all without threads', () => {
    const make = (length: number) => new Float32Array(length)
    const many = new GradientSlots([3, 9, 4], 2, make)
    assert.deepEqual(
      many.memory.map(({ length }) => length),
      [9, 9, 9]
    )
    const one = new GradientSlots([3, 9, 4], 0, make)
    assert.equal(one.memory.length, 1)
    assert.deepEqual(waitsOf(one, [2, 1]), [[0], [0, 2]])
  })
})

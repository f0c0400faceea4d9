/** When a peer whose stream has ended learns from what is left. */
import assert from 'node:assert/strict'
import { Remainder } from '../../../src/admb/driver/remainder.js'

describe('what is left at the end of a stream', () => {
  const fake = () => {
    const uses: number[] = []
    const node = {
      predictor: {
        id: { updates: 0, origin: 'a', incarnation: 1, nonce: 0, digest: 'd0' },
        parameters: [],
        average: [],
        state: []
      },
      gradients: 0,
      useRemainder: () => uses.push(node.gradients)
    }
    return { node, uses }
  }

  it('is used once neither the predictor nor the number of gradients has changed for 5 s', () => {
    const { node, uses } = fake()
    const remainder = new Remainder(node as never, 10)
    node.gradients = 3
    for (let now = 0; now <= 4000; now += 100) remainder.tick(now)
    node.gradients = 4
    for (let now = 4100; now < 9100; now += 100) remainder.tick(now)
    assert.deepEqual(uses, [])
    node.predictor.id.digest = 'd1'
    for (let now = 9100; now < 14_100; now += 100) remainder.tick(now)
    assert.deepEqual(uses, [])
    remainder.tick(14_100)
    assert.deepEqual(uses, [4])
  })

  it('is nothing without gradients, and waits longer with a longer period', () => {
    const { node, uses } = fake()
    const remainder = new Remainder(node as never, 1000)
    for (let now = 0; now <= 200_000; now += 1000) remainder.tick(now)
    assert.deepEqual(uses, [])
    node.gradients = 1
    for (let now = 201_000; now < 329_000; now += 1000) remainder.tick(now)
    assert.deepEqual(uses, [])
    remainder.tick(329_000)
    assert.deepEqual(uses, [1])
  })
})

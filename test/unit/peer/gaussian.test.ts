/** The noise of differential privacy. */
import assert from 'node:assert/strict'
import { Random } from '../../../sim/engine/random.js'
import { gaussian } from '../../../src/peer/privacy-budget.js'

function seeded(seed: number): () => number {
  const random = new Random(seed)
  return gaussian(words => {
    for (let i = 0; i < words.length; i++) words[i] = Math.floor(random.next() * 2 ** 32)
  })
}

describe('gaussian', () => {
  it('has the moments and the tails of the standard normal distribution', () => {
    const normal = seeded(1)
    const drawn = Array.from({ length: 200_000 }, normal)
    const mean = (f: (x: number) => number) => drawn.reduce((sum, x) => sum + f(x), 0) / drawn.length
    assert.ok(Math.abs(mean(x => x)) < 0.01)
    assert.ok(Math.abs(mean(x => x * x) - 1) < 0.02)
    assert.ok(Math.abs(mean(x => x ** 3)) < 0.05)
    assert.ok(Math.abs(mean(x => x ** 4) - 3) < 0.15)
    assert.ok(Math.abs(mean(x => Number(Math.abs(x) > 1.959964)) - 0.05) < 0.003)
    assert.ok(Math.abs(mean(x => Number(Math.abs(x) > 3)) - 0.0027) < 0.0006)
    const neighbours = drawn.slice(1).reduce((sum, x, i) => sum + x * drawn[i], 0) / drawn.length
    assert.ok(Math.abs(neighbours) < 0.01)
  })

  it('is finite for all bits', () => {
    for (const bits of [0, 0xffffffff]) {
      const normal = gaussian(words => words.fill(bits))
      for (let i = 0; i < 4; i++) assert.ok(Number.isFinite(normal()))
    }
  })

  it('differs with each start', () => {
    const [a, b] = [gaussian(), gaussian()]
    assert.notDeepEqual(Array.from({ length: 4 }, a), Array.from({ length: 4 }, b))
  })
})

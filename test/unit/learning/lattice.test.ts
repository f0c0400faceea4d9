import assert from 'node:assert/strict'
import { digest } from '../../../src/learning/index.js'
import { createRule } from '../../../src/learning/rules/index.js'
import { latticeRecipe } from '../../../src/learning/rules/lattice.js'

/** The exponents of the grid at the indices after `updates` batches, whose integers there are 3, in a model of that length. */
function gridAfter(updates: number, length: number, indices: readonly number[]): number[] {
  const { rule } = latticeRecipe({ rule: createRule({ name: 'adagrad' }), digest }, { batch: 8 })
  const layout = { blocks: [{ name: 'weights', length }] }
  let now = {
    parameters: [new Float32Array(length)] as readonly Float32Array[],
    state: rule.stateLayout(layout).blocks.map(block => new Float32Array(block.length)) as readonly Float32Array[]
  }
  for (let update = 0; update < updates; update++) {
    const sum = new Float32Array(length)
    for (const i of indices) sum[i] = 3
    now = rule.step(now, [sum], 8, update, 2)
  }
  const [exponents] = rule.grid(now, updates)
  return indices.map(i => exponents[i])
}

describe('the grid of integer sums', () => {
  it('is as fine for few of many hashed features as for a small model', () => {
    const small = gridAfter(6, 5, [0, 1, 2, 3, 4])
    const hashed = gridAfter(6, 2 ** 18, [7, 400, 90_000, 90_001, 2 ** 18 - 1])
    // The first grid is that of a large model.
    for (const [n, exponent] of hashed.entries())
      assert.ok(Math.abs(exponent - small[n]) <= 1, `${hashed}, not ${small}`)
  })
})

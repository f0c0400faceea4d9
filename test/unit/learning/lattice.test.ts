import assert from 'node:assert/strict'
import { digest } from '../../../src/learning/index.js'
import { createRule } from '../../../src/learning/rules/index.js'
import { latticeRecipe } from '../../../src/learning/rules/lattice.js'
import { averagingRule } from '../../../src/learning/rules/local-steps.js'

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
  it('of local steps is one that the first steps reach, even if the rule warms up', () => {
    const gridOf = (warmup: number) => {
      const local = averagingRule(createRule({ name: 'adamw', step: 1e-3, warmup }), { batch: 64, steps: 8 })
      const { rule } = latticeRecipe({ rule: local, digest }, { batch: 64 })
      const state = rule.stateLayout({ blocks: [{ name: 'weights', length: 4 }] }).blocks
      return rule.grid(
        { parameters: [new Float32Array(4)], state: state.map(({ length }) => new Float32Array(length)) },
        0
      )[0][0]
    }
    const steady = gridOf(0)
    // A tenth of the step is between 3 and 4 powers of two.
    assert.ok(gridOf(10) >= steady - 4 && gridOf(10) <= steady, `${gridOf(10)}, not ${steady}`)
  })

  it('is as fine for few of many hashed features as for a small model', () => {
    const small = gridAfter(6, 5, [0, 1, 2, 3, 4])
    const hashed = gridAfter(6, 2 ** 18, [7, 400, 90_000, 90_001, 2 ** 18 - 1])
    // The first grid is that of a large model.
    for (const [n, exponent] of hashed.entries())
      assert.ok(Math.abs(exponent - small[n]) <= 1, `${hashed}, not ${small}`)
  })
})

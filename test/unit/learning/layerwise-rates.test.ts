import { deepEqual, ok } from 'node:assert/strict'
import { stateBlockIndices, zeros } from '../../../src/learning/engines/working-content.js'
import { createRule, isBlockwise, type RuleSpec } from '../../../src/learning/rules/index.js'
import type { Layout, RuleState } from '../../../src/learning/types.js'
import { randomFrom } from '../../support/learning/rows.js'

const layout: Layout = {
  blocks: [
    { name: 'lower', length: 4 },
    { name: 'upper', length: 3 }
  ]
}

function drawn(seed: number): Float32Array[] {
  const random = randomFrom(seed)
  return layout.blocks.map(({ length }) => Float32Array.from({ length }, () => 2 * random() - 1))
}

const length = (vector: readonly number[]) => Math.hypot(...vector)

/** Compares the rule's parameters after some gradients with those of a reference, block by block. */
function assertFollows(spec: RuleSpec, reference: (w: number[], gradients: readonly number[][]) => number[]): void {
  const rule = createRule(spec)
  const start = drawn(1)
  const sums = [2, 3, 4, 5].map(drawn)
  let now: RuleState = { parameters: start, state: zeros(rule.stateLayout(layout)) }
  sums.forEach((sum, updates) => {
    now = rule.step(now, sum, updates + 1, updates)
  })
  now.parameters.forEach((block, k) => {
    const gradients = sums.map((sum, updates) => Array.from(sum[k], g => g / (updates + 1)))
    const expected = reference([...start[k]], gradients)
    for (const [i, w] of block.entries()) ok(Math.abs(w - expected[i]) < 1e-5, `${w} against ${expected[i]}`)
  })
}

describe('rules with layer-wise rates', () => {
  it('LARS steps along a momentum of gradients scaled to the block', () => {
    assertFollows({ name: 'lars', step: 0.5, momentum: 0.8, trust: 0.02, decay: 0.1 }, (start, gradients) => {
      let w = start
      let velocity = start.map(() => 0)
      for (const gradient of gradients) {
        const direction = gradient.map((g, i) => g + 0.1 * w[i])
        const rate = (0.5 * 0.02 * length(w)) / length(direction)
        velocity = velocity.map((v, i) => 0.8 * v + rate * direction[i])
        w = w.map((value, i) => value - velocity[i])
      }
      return w
    })
  })

  it("LAMB steps along Adam's direction with decay, scaled to the block", () => {
    assertFollows(
      { name: 'lamb', step: 0.1, beta1: 0.7, beta2: 0.9, epsilon: 1e-3, decay: 0.2 },
      (start, gradients) => {
        let w = start
        let mean = start.map(() => 0)
        let square = start.map(() => 0)
        gradients.forEach((gradient, t) => {
          mean = mean.map((m, i) => 0.7 * m + 0.3 * gradient[i])
          square = square.map((v, i) => 0.9 * v + 0.1 * gradient[i] ** 2)
          const direction = mean.map(
            (m, i) => m / (1 - 0.7 ** (t + 1)) / (Math.sqrt(square[i] / (1 - 0.9 ** (t + 1))) + 1e-3) + 0.2 * w[i]
          )
          const rate = (0.1 * length(w)) / length(direction)
          w = w.map((value, i) => value - rate * direction[i])
        })
        return w
      }
    )
  })
})

describe('blockwise rules', () => {
  const specs: readonly RuleSpec[] = [
    { name: 'momentum' },
    { name: 'adam' },
    { name: 'lamb', decay: 0.1 },
    { name: 'lars' },
    { name: 'dual-averaging' },
    { name: 'mirror-descent' },
    { name: 'adagrad' }
  ]
  for (const spec of specs) {
    it(`${spec.name} gives the same bits when stepped block by block`, () => {
      ok(isBlockwise(spec))
      const rule = createRule(spec)
      const indices = stateBlockIndices(rule, layout)
      const state = zeros(rule.stateLayout(layout))
      let whole: RuleState = { parameters: drawn(1), state }
      let apart = layout.blocks.map((_, k) => ({
        parameters: [drawn(1)[k]],
        state: indices[k].map(i => state[i])
      }))
      for (const [updates, seed] of [2, 3, 4].entries()) {
        const sum = drawn(seed)
        whole = rule.step(whole, sum, 3, updates)
        apart = apart.map((block, k) => rule.step(block, [sum[k]], 3, updates) as typeof block)
      }
      for (const [k, { parameters, state: own }] of apart.entries()) {
        deepEqual(parameters[0], whole.parameters[k])
        deepEqual(
          own,
          indices[k].map(i => whole.state[i])
        )
      }
    })
  }

  it('excludes rules that depend on all blocks', () => {
    ok(!isBlockwise({ name: 'adam', radius: 1 }))
    ok(!isBlockwise({ name: 'adagrad', maxLossDecrease: 1 }))
    ok(!isBlockwise({ name: 'mirror-descent', geometry: 'entropic' }))
  })
})

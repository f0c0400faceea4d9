/** The lazy penalty of AdaGrad: the same as a decay of all weights in every update. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createRule } from '../../../src/learning/index.js'
import { decayed } from '../../../src/learning/rules/adagrad.js'

const LENGTH = 6
const numbers = fc.double({ min: -8, max: 8, noNaN: true })
const options = fc.record({
  l2: fc.constantFrom(1e-6, 1e-3, 0.03),
  growth: fc.constantFrom(0, 0.5, 2),
  maxLossDecrease: fc.constantFrom(undefined, 0.05)
})
/** Gradients of which most are 0. */
const gradients = fc.array(fc.oneof({ arbitrary: fc.constant(0), weight: 4 }, numbers), {
  minLength: LENGTH,
  maxLength: LENGTH
})

/** dw/dt = −max(step, growth·|w|)·w by many small steps. */
function integrated(weight: number, time: number, step: number, growth: number): number {
  const parts = 4000
  let w = weight
  for (let i = 0; i < parts; i++) {
    // The midpoint method.
    const middle = w - (time / parts / 2) * Math.max(step, growth * Math.abs(w)) * w
    w -= (time / parts) * Math.max(step, growth * Math.abs(middle)) * middle
  }
  return w
}

function assertClose(actual: number, expected: number, tolerance: number): void {
  assert.ok(Math.abs(actual - expected) <= tolerance * Math.abs(expected) + 1e-12, `${actual}, expected ${expected}`)
}

describe('the lazy penalty of AdaGrad', () => {
  it('is the flow of the penalty, and does not depend on when it is made up for', () => {
    const times = fc.double({ min: 0, max: 3, noNaN: true })
    const positive = fc.double({ min: 0.01, max: 2, noNaN: true })
    fc.assert(
      fc.property(numbers, times, times, positive, fc.constantFrom(0, 0.5, 2), (weight, t, u, step, growth) => {
        const whole = decayed(weight, t + u, step, growth)
        assertClose(decayed(decayed(weight, t, step, growth), u, step, growth), whole, 1e-12)
        assertClose(whole, integrated(weight, t + u, step, growth), 1e-4)
      })
    )
  })

  it('gives the weights of a rule that decays all weights in every update', () => {
    fc.assert(
      fc.property(
        options,
        fc.array(gradients, { minLength: 2, maxLength: 40 }),
        fc.integer({ min: 1, max: 64 }),
        (given, sums, count) => {
          const rule = createRule({ name: 'adagrad', ...given })
          const plain = createRule({ name: 'adagrad', ...given, l2: undefined })
          const zeros = () => new Float32Array(LENGTH)
          let lazy = { parameters: [zeros()], state: [zeros(), zeros()] } as ReturnType<typeof rule.step>
          let dense = { parameters: [zeros()], state: [zeros()] } as ReturnType<typeof rule.step>
          const largest = new Float64Array(LENGTH)
          // The last gradients are so small that they only make all weights decay.
          for (const [updates, values] of [...sums, new Array<number>(LENGTH).fill(1e-30)].entries()) {
            const sum = [Float32Array.from(values)]
            lazy = rule.step(lazy, sum, count, updates)
            const [squares] = dense.state
            const all = dense.parameters[0].map((weight, i) =>
              decayed(weight, (given.l2 * Math.sqrt(count)) / Math.sqrt(0.01 + squares[i]), 0.2, given.growth)
            )
            dense = plain.step({ parameters: [all], state: dense.state }, sum, count, updates)
            for (const [i, weight] of dense.parameters[0].entries()) largest[i] = Math.max(largest[i], Math.abs(weight))
          }
          assert.deepEqual(lazy.state[0], dense.state[0])
          // Rounding is relative to the weights on the way, of which large ones may cancel.
          for (const [i, weight] of lazy.parameters[0].entries()) {
            const expected = dense.parameters[0][i]
            const bound = 1e-5 * Math.max(Math.abs(expected), largest[i])
            assert.ok(Math.abs(weight - expected) <= bound + 1e-12, `${weight}, expected ${expected}`)
          }
        }
      )
    )
  })
})

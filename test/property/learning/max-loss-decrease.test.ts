/** The limit of the decrease that a batch's step predicts: longer steps are shortened in their direction, others are unchanged. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createRule, ruleFor } from '../../../src/learning/index.js'

const promised = (before: Float32Array, after: Float32Array, sum: Float32Array, count: number) =>
  before.reduce((total, weight, i) => total + ((weight - after[i]) * sum[i]) / count, 0)

describe('the limit of the loss decrease of an AdaGrad step', () => {
  const gradient = fc.float32Array({ min: -50, max: 50, noNaN: true, minLength: 8, maxLength: 8 })
  const step = (maxLossDecrease: number | undefined, sum: Float32Array, count: number) => {
    const before = new Float32Array(8)
    const rule = createRule({ name: 'adagrad', maxLossDecrease })
    const { parameters, state } = rule.step({ parameters: [before], state: [new Float32Array(8)] }, [sum], count, 0)
    return { after: parameters[0], squares: state[0], decrease: promised(before, parameters[0], sum, count) }
  }

  it('holds, in the direction of the full step', () => {
    fc.assert(
      fc.property(gradient, fc.integer({ min: 2, max: 600 }), fc.constantFrom(0.01, 0.5, 1), (sum, count, promise) => {
        const full = step(undefined, sum, count)
        const cut = step(promise, sum, count)
        assert.ok(cut.decrease <= promise * 1.0001)
        assert.deepEqual(cut.squares, full.squares)
        const share = Math.min(1, promise / full.decrease)
        for (let i = 0; i < 8; i++) assert.ok(Math.abs(cut.after[i] - share * full.after[i]) < 1e-6)
        if (full.decrease < promise) assert.deepEqual(cut.after, full.after)
      })
    )
  })

  it('does not apply to batches of one, nor by default to regression', () => {
    const sum = Float32Array.of(9, 9, 9, 9, 9, 9, 9, 9)
    assert.deepEqual(step(0.01, sum, 1).after, step(undefined, sum, 1).after)
    assert.deepEqual(ruleFor('linear'), { name: 'adagrad', maxForget: 0.05 })
    assert.deepEqual(ruleFor('softmax', { name: 'adagrad', step: 0.1 }), {
      name: 'adagrad',
      step: 0.1,
      maxLossDecrease: 1,
      maxForget: 0.05
    })
    const given = { name: 'adagrad', maxLossDecrease: 3, maxForget: 0 } as const
    assert.deepEqual(ruleFor('hinge', given), given)
    assert.equal((ruleFor('hinge', { name: 'adagrad', forget: 0.1 }) as { maxForget?: number }).maxForget, undefined)
    assert.deepEqual(ruleFor('logistic', { name: 'adam' }), { name: 'adam' })
  })
})

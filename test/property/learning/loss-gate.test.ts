/** The loss gate refuses predictors that are clearly worse than the held one and than none, and no others. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createLearner, LossGate } from '../../../src/learning/index.js'

const learner = createLearner({ model: 'logistic', dimension: 2 })

const none = predictor(0, 0)

function single(...values: number[]) {
  const [offsets, indices] = [Int32Array.of(0, 2), Int32Array.of(0, 1)]
  return { size: 1, offsets, indices, values: Float32Array.from(values) }
}

/** Inputs with a constant feature and one in [−1, 1] that determines the class, except for a share of them. */
function gateOf(count: number, seed: number, noise = 0.1): LossGate {
  const gate = new LossGate(learner)
  let state = seed
  const random = () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state / 0x80000000
  }
  for (let i = 0; i < count; i++) {
    const value = 2 * random() - 1
    const label = Number(value > 0 !== random() < noise)
    gate.add({ ...single(1, value), labels: Float32Array.of(label) })
  }
  return gate
}

function predictor(...weights: number[]) {
  const blocks = [Float32Array.from(weights)]
  return { parameters: blocks, average: blocks }
}

const good = predictor(0, 3)

describe('the loss gate', () => {
  it('refuses garbage, by its parameters or by their average, and numbers that are not finite', () => {
    const gate = gateOf(300, 1)
    for (const bad of [predictor(0, -3), predictor(20, 0), predictor(0, Number.NaN), predictor(1e30, 0)]) {
      for (const held of [none, good]) {
        assert.equal(gate.accepts(bad, held), false)
        assert.equal(gate.accepts({ ...good, average: bad.average }, held), false)
        assert.equal(gate.accepts({ ...good, parameters: bad.parameters }, held), false)
      }
    }
    assert.ok(gate.accepts(good, none) && gate.accepts(none, good))
  })

  it('accepts what is better than what is held, even if it is worse than none', () => {
    assert.ok(gateOf(300, 1).accepts(predictor(0, -1), predictor(0, -3)))
  })

  it('accepts everything with few inputs', () => {
    assert.ok(gateOf(63, 1).accepts(predictor(0, -3), good))
    assert.equal(gateOf(64, 1).accepts(predictor(0, -9), good), false)
  })

  it('judges by the newest inputs', () => {
    const gate = gateOf(300, 1)
    const flipped = gateOf(300, 2, 0.9)
    assert.equal(gate.accepts(predictor(0, -3), good), false)
    assert.ok(flipped.accepts(predictor(0, -3), good))
  })

  it('never refuses a predictor that is no worse than none', () => {
    const runs = fc.record({
      seed: fc.integer({ min: 1, max: 1e6 }),
      weight: fc.double({ min: 0, max: 3, noNaN: true })
    })
    fc.assert(fc.property(runs, ({ seed, weight }) => assert.ok(gateOf(256, seed).accepts(predictor(0, weight), good))))
  })
})

/** Scales of the bound of influence: how a predictor's follow from the votes in a batch. */
import assert from 'node:assert/strict'
import {
  type Blocks,
  carry,
  createAveraging,
  createLearner,
  createRule,
  InfluenceBound
} from '../../../src/learning/index.js'

const plain = createLearner({ model: 'logistic', dimension: 3 })
const bound = new InfluenceBound(plain.layout)
const { learner, recipe } = carry(
  { learner: plain, recipe: { rule: createRule({ name: 'adagrad' }), averaging: createAveraging({ name: 'tail' }) } },
  [bound]
)
const { rule, averaging } = recipe
const COUNT = 16

/** The scale after a batch of 16 gradients with this share of votes. */
function scaleAfter(before: number, share: number, gradient: number[] = [1, 2, 2]): number {
  const state = rule.stateLayout(learner.layout).blocks.map(({ length }) => new Float32Array(length))
  const parameters: Blocks = [new Float32Array(3), Float32Array.of(before)]
  const sum = [Float32Array.from(gradient), Float32Array.of(share * COUNT)]
  return rule.step({ parameters, state }, sum, COUNT, 5).parameters[bound.index][0]
}

describe('scales of the bound of influence', () => {
  it('are not known at first, and follow from the first batch with a gradient', () => {
    assert.deepEqual([...bound.of(learner.initial())], [0])
    assert.equal(scaleAfter(0, 0, [0, 0, 0]), 0)
    // The norm is 3, so a single contributor of these gradients has 3/√16.
    assert.ok(scaleAfter(0, 1) >= 3 / 4)
  })

  it('grow if most vote for it, shrink if few do, and stay the same at a half', () => {
    const scales = [0, 0.25, 0.5, 0.75, 1].map(share => scaleAfter(2, share))
    assert.deepEqual(
      scales,
      scales.toSorted((a, b) => a - b)
    )
    assert.equal(scales[2], 2)
    assert.ok(scales[0] > 1.8 && scales[0] < 2 && scales[1] < 2, `${scales}`)
    assert.ok(scales[4] > 4, `${scales}`)
  })

  it('remain numbers, whatever votes a batch contains', () => {
    assert.equal(scaleAfter(2, 1e30), scaleAfter(2, 1))
    assert.equal(scaleAfter(2, -1e30), scaleAfter(2, 0))
    for (const before of [Number.NaN, -1, 1e38]) {
      const scale = scaleAfter(before, 1)
      assert.ok(scale >= 0 && Number.isFinite(scale), `${before}: ${scale}`)
    }
  })

  it('do not change what the rule, the average and the learner compute', () => {
    const inner = createRule({ name: 'adagrad' })
    const parameters = [Float32Array.of(1, 2, 3)]
    const state = inner.stateLayout(plain.layout).blocks.map(({ length }) => new Float32Array(length).fill(0.5))
    const sum = [Float32Array.of(4, 5, 6)]
    const expected = inner.step({ parameters, state }, sum, 4, 7)
    const bounded = rule.step(
      { parameters: [...parameters, Float32Array.of(1)], state },
      [...sum, Float32Array.of(2)],
      4,
      7
    )
    assert.deepEqual([bounded.parameters[0], bounded.state], [expected.parameters[0], expected.state])
    const before = [Float32Array.of(0, 0, 0), Float32Array.of(7)]
    const average = averaging.average(before, bounded.parameters, 3, before)
    assert.deepEqual(average[1], bounded.parameters[1])
    const row = { size: 1, labels: Float32Array.of(1), offsets: Int32Array.of(0, 1), indices: Int32Array.of(2) }
    const rows = { ...row, values: Float32Array.of(2) }
    assert.deepEqual(learner.predict(bounded.parameters, rows, 0, 1), plain.predict(expected.parameters, rows, 0, 1))
    const [own, other] = [[new Float32Array(3), new Float32Array(1)], [new Float32Array(3)]]
    learner.addGradient(bounded.parameters, rows, 0, 1, own)
    plain.addGradient(expected.parameters, rows, 0, 1, other)
    assert.deepEqual(own, [...other, Float32Array.of(0)])
  })

  it('are half voted for by nodes that lose what is tolerated', () => {
    assert.equal(bound.vote(0), 0)
    assert.ok(bound.vote(0.02) === 0.5 && bound.vote(1) > 0.99)
  })
})

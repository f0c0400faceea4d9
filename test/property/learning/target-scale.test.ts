/** Regression with a standardised target: independent of the target's unit, in its units, and stable with every rule. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createLearner, type Examples, SerialTrainer } from '../../../src/learning/index.js'
import { standardised } from '../../../src/learning/models/losses.js'
import type { RuleName } from '../../../src/learning/rules/index.js'
import { roundedScale } from '../../../src/numeric/numbers.js'
import { randomFrom } from '../../support/learning/rows.js'
import { share } from '../../support/runs.js'

const DIMENSION = 24

/** Dense rows with a constant and standardised columns, and targets from a planted model in other units. */
function rows(seed: number, count: number, mean: number, unit: number): Examples {
  const random = randomFrom(seed)
  const normal = () => Array.from({ length: 12 }, random).reduce((sum, value) => sum + value - 0.5, 0)
  const planted = Array.from({ length: DIMENSION - 1 }, normal)
  const labels = new Float32Array(count)
  const values = new Float32Array(count * DIMENSION)
  for (let row = 0; row < count; row++) {
    let score = 0.5 * normal()
    for (let k = 0; k < DIMENSION - 1; k++) {
      const x = normal()
      values[row * DIMENSION + k] = x
      score += x * planted[k]
    }
    values[row * DIMENSION + DIMENSION - 1] = 1
    labels[row] = mean + (unit * score) / Math.sqrt(DIMENSION)
  }
  return {
    size: count,
    labels,
    values,
    offsets: Int32Array.from({ length: count + 1 }, (_, row) => row * DIMENSION),
    indices: Int32Array.from({ length: count * DIMENSION }, (_, at) => at % DIMENSION)
  }
}

function trained(examples: Examples, options: object = {}) {
  const trainer = new SerialTrainer({ model: 'linear', targetScale: roundedScale(examples.labels), ...options })
  trainer.learn(examples)
  const total = trainer.metrics()?.total
  assert.ok(total?.r2 !== undefined && total.rmse !== undefined)
  return { r2: total.r2, rmse: total.rmse, averageLoss: trainer.report().averageLoss ?? Number.NaN }
}

describe('a standardised target', () => {
  it('has an error that does not depend on the unit and offset of the target', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.integer({ min: -8, max: 12 }),
        fc.integer({ min: -5, max: 5 }),
        (seed, power, offset) => {
          const unit = 2 ** power
          const base = trained(rows(seed, 300, 0, 1))
          const other = trained(rows(seed, 300, 4 * offset * unit, unit))
          assert.ok(Math.abs(other.rmse / unit / base.rmse - 1) < 1e-3, `${other.rmse / unit} and ${base.rmse}`)
        }
      ),
      { numRuns: share(25) }
    )
  })

  it('lets every rule with its defaults predict better than the mean', () => {
    const names: RuleName[] = ['adagrad', 'momentum', 'dual-averaging', 'mirror-descent', 'adam', 'lamb']
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(...names), (seed, name) => {
        const { r2 } = trained(rows(seed, 3000, 1000, 100), { rule: { name } })
        assert.ok(r2 > 0.3, `${name}: R² ${r2}`)
      }),
      { numRuns: share(24) }
    )
  })

  it('gives the fused loop and the general engine the same results', () => {
    fc.assert(
      fc.property(fc.nat(), seed => {
        const examples = rows(seed, 200, 50, 8)
        const [fused, general] = [trained(examples), trained(examples, { l2: 1e-30 })]
        assert.ok(Math.abs(fused.averageLoss / general.averageLoss - 1) < 1e-4)
        assert.ok(Math.abs(fused.rmse ** 2 / 2 / fused.averageLoss - 1) < 1e-6)
      }),
      { numRuns: share(20) }
    )
  })

  it('has a slope that is the derivative of its loss over the squared deviation', () => {
    const number = fc.double({ min: -100, max: 100, noNaN: true })
    fc.assert(
      fc.property(
        number,
        fc.double({ min: 0.1, max: 100, noNaN: true }),
        number,
        number,
        (mean, deviation, score, y) => {
          const loss = standardised({ mean, deviation })
          const h = 1e-3
          const derivative = (loss.value(score + h, y) - loss.value(score - h, y)) / (2 * h)
          const expected = deviation ** 2 * loss.slope(score, y)
          assert.ok(Math.abs(derivative - expected) <= 1e-6 * (1 + Math.abs(expected)) * (1 + deviation ** 2))
        }
      )
    )
  })

  it('is undone in predictions', () => {
    const learner = createLearner({ model: 'linear', dimension: 1, targetScale: { mean: 100, deviation: 16 } })
    const one = { size: 1, labels: Float32Array.of(0), offsets: Int32Array.of(0, 1), indices: Int32Array.of(0) }
    const [{ label, scores }] = learner.predict([Float32Array.of(0.5)], { ...one, values: Float32Array.of(3) }, 0, 1)
    assert.equal(label, 124)
    assert.deepEqual(scores, [124])
  })

  it('has a scale that estimates from other rows of the stream agree on, and that equal labels do not break', () => {
    const scaleOf = (...labels: number[]) => roundedScale(labels)
    assert.deepEqual(scaleOf(90, 110, 105, 96), { mean: 100, deviation: 8 })
    assert.deepEqual(scaleOf(92, 108, 104, 95), { mean: 100, deviation: 8 })
    assert.deepEqual(scaleOf(7, 7), { mean: 7, deviation: 1 })
    assert.equal(scaleOf(Number.NaN), undefined)
    const invalid = { model: 'linear', dimension: 1, targetScale: { mean: 0, deviation: 0 } } as const
    assert.throws(() => createLearner(invalid), /deviation above 0, such as 190:180/)
    assert.throws(() => createLearner({ ...invalid, model: 'hinge' }), /a target scale is for the model linear/)
  })
})

/** Weights of linear models survive their text formats, bit by bit. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  decimal,
  type LinearModel,
  type LinearModelSpec,
  readJson,
  writeJson
} from '../../../src/cli/linear/formats.js'

const float = fc.float({ noNaN: true, noDefaultInfinity: true })

function specOf(model: 'logistic' | 'softmax', features: number): LinearModelSpec {
  const classes = model === 'softmax' ? { classes: 3 } : {}
  const rest = { rule: { name: 'adagrad' }, averaging: { name: 'tail' }, batch: 1 } as const
  return { model, dimension: 1 + features, ...classes, ...rest, features: { constant: true, scale: 'none' } }
}

function modelOf(
  spec: LinearModelSpec,
  weights: Float32Array,
  nameOf = (feature: number) => `f${feature}`
): LinearModel {
  const id = { updates: 1, origin: 'a', incarnation: 1, nonce: 0, digest: '00' }
  const outputs = spec.classes ?? 1
  return { spec, id, weights, outputs, classNames: undefined, moments: undefined, nameOf }
}

describe('weights of linear models', () => {
  it('are written with the digits that 32-bit floats need', () => {
    fc.assert(
      fc.property(float, weight => {
        assert.equal(Math.fround(decimal(weight)), weight + 0)
      })
    )
  })

  it('are the same after JSON', () => {
    const drawn = fc.tuple(fc.constantFrom('logistic', 'softmax'), fc.array(float, { minLength: 3, maxLength: 30 }))
    fc.assert(
      fc.property(drawn, fc.string(), ([model, numbers], name) => {
        const stride = model === 'softmax' ? 3 : 1
        const features = Math.max(1, Math.floor(numbers.length / stride) - 1)
        const weights = Float32Array.from({ length: stride * (features + 1) }, (_, i) => (numbers[i] ?? 0) + 0)
        const spec = specOf(model, features)
        const read = readJson(writeJson(modelOf(spec, weights, () => name)), 'file')
        assert.deepEqual(read.weights, weights)
        assert.deepEqual(read.spec, JSON.parse(JSON.stringify(spec)))
      })
    )
  })
})

/** Weights of linear models survive their text formats, bit by bit. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { readJson, writeJson } from '../../../src/cli/linear/json.js'
import { decimal, type LinearModel, type LinearModelSpec } from '../../../src/cli/linear/model.js'
import { readVwText, writeVwText } from '../../../src/cli/linear/vw-text.js'

const float = fc.float({ noNaN: true, noDefaultInfinity: true })

function specOf(model: 'logistic' | 'softmax', features: number, hashBits?: number): LinearModelSpec {
  const classes = model === 'softmax' ? { classes: 3 } : {}
  const rest = { rule: { name: 'adagrad' }, averaging: { name: 'tail' }, batch: 1 } as const
  return { model, dimension: 1 + features, ...classes, ...rest, features: { constant: true, hashBits, scale: 'none' } }
}

function modelOf(
  spec: LinearModelSpec,
  weights: Float32Array,
  nameOf = (feature: number) => `f${feature}`
): LinearModel {
  const id = { updates: 1, origin: 'a', incarnation: 1, nonce: 0, digest: '00' }
  const outputs = spec.classes ?? 1
  return { spec, id, weights, outputs, classNames: undefined, moments: undefined, nameOf, isNamed: () => true }
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

  it('are the same after the text of VW, whatever the names', async () => {
    const bits = 5
    const constantIndex = 11_650_396 & (2 ** bits - 1)
    await fc.assert(
      fc.asyncProperty(fc.array(float, { minLength: 33, maxLength: 33 }), fc.string(), async (numbers, name) => {
        const weights = Float32Array.from(numbers, number => number + 0)
        // The feature with the hash of the constant shares its weight.
        weights[1 + constantIndex] = weights[0]
        const spec = specOf('logistic', 2 ** bits, bits)
        const text = writeVwText(modelOf(spec, weights, () => name))
        const read = await readVwText(text, 'file', async () => spec, undefined, assert.fail)
        assert.deepEqual(read.weights, weights)
      })
    )
  })
})

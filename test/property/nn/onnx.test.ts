/** Exported ONNX files have the outputs of the models. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { useBackend } from '../../support/l2l/layers.js'
import { onnxCases } from '../../support/onnx/cases.js'
import { evaluate, readOnnx } from '../../support/onnx/evaluate.js'

describe('ONNX files', function () {
  this.timeout(60_000)
  before(() => useBackend('cpu'))

  it('have the outputs of every model', () =>
    fc.assert(
      fc.asyncProperty(fc.nat(), fc.integer({ min: 1, max: 4 }), async (seed, rows) => {
        for (const { name, file, inputs, outputs } of await onnxCases(seed, rows)) {
          const found = evaluate(readOnnx(file), inputs)
          for (const [output, expected] of Object.entries(outputs)) {
            assert.deepEqual(found[output].shape, expected.shape, `${name}: ${output}`)
            for (const [i, value] of expected.data.entries()) {
              const actual = found[output].data[i]
              if (typeof value === 'string') assert.equal(actual, value, name)
              else
                assert.ok(Math.abs(actual - value) < 2e-5 * Math.max(1, Math.abs(value)), `${name}: ${actual} ${value}`)
            }
          }
        }
      }),
      { numRuns: 5 }
    ))
})

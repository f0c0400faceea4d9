/** Two runs on the halves of a stream, the second from the result of the first, equal one run on the whole. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { openDevice } from '../../../src/device/index.js'
import { L2LEngine } from '../../../src/l2l/index.js'
import { type Examples, type SerialOptions, SerialTrainer, type Trained } from '../../../src/learning/index.js'
import { denseModel, randomRows as denseRows } from '../../support/l2l/dense-model.js'
import { examplesOf, randomRows } from '../../support/learning/rows.js'

/** The result of learning each part with a trainer that continues from the one before. */
function learnParts(trainerOf: () => SerialTrainer, parts: readonly Examples[]): Trained {
  let result: Trained | undefined
  for (const part of parts) {
    const trainer = trainerOf()
    if (result !== undefined) trainer.resume(result)
    trainer.learn(part)
    result = trainer.finish()
  }
  return result as Trained
}

const plain = ({ parameters, average, state, updates }: Trained) => ({ parameters, average, state, updates })

const options = fc.record({
  model: fc.constantFrom('logistic', 'hinge', 'linear', 'softmax'),
  rule: fc.constantFrom({ name: 'adagrad' }, { name: 'adam' }, { name: 'momentum' }, { name: 'dual-averaging' }),
  averaging: fc.constantFrom({ name: 'tail' }, { name: 'uniform' }, { name: 'none' }),
  batch: fc.integer({ min: 1, max: 6 }),
  seed: fc.nat(1000)
})

describe('continuing a training run', () => {
  it('is exact, up to the rounding of float32 where one input makes an update of AdaGrad', () => {
    fc.assert(
      fc.property(options, fc.integer({ min: 1, max: 9 }), ({ seed, ...given }, firstUpdates) => {
        const classes = given.model === 'softmax' ? 3 : given.model === 'linear' ? 0 : 2
        const rows = randomRows({ count: 12 * given.batch, dimension: 7, features: 4, classes, seed })
        const first = firstUpdates * given.batch
        const parts = [rows.slice(0, first), rows.slice(first)].map(examplesOf)
        const serial = { ...given, dimension: 7, ...(classes > 2 && { classes }) } as SerialOptions
        const trainerOf = () => new SerialTrainer(serial)
        const whole = plain(learnParts(trainerOf, [examplesOf(rows)]))
        const continued = plain(learnParts(trainerOf, parts))
        if (given.batch > 1 || given.rule.name !== 'adagrad') return assert.deepEqual(continued, whole)
        assert.equal(continued.updates, whole.updates)
        for (const kind of ['parameters', 'average', 'state'] as const) {
          for (const [i, value] of whole[kind][0].entries()) {
            assert.ok(Math.abs(continued[kind][0][i] - value) <= 1e-4 * Math.max(1, Math.abs(value)))
          }
        }
      })
    )
  })

  it('is exact for networks', async () => {
    await openDevice('cpu')
    const model = denseModel(4, [5], 3)
    const rows = denseRows(model, 48)
    const part = (from: number, to: number): Examples => ({
      ...rows,
      size: to - from,
      labels: rows.labels.subarray(from),
      offsets: rows.offsets.subarray(from)
    })
    for (const rule of [{ name: 'adam' }, { name: 'momentum' }] as const) {
      const trainerOf = () => {
        const engine = new L2LEngine({
          model,
          rule,
          averaging: { name: 'tail' },
          batch: 8,
          predictWith: 'average',
          schedule: 'l2l'
        })
        return new SerialTrainer({ engine, classifies: true })
      }
      const whole = plain(learnParts(trainerOf, [part(0, 48)]))
      assert.deepEqual(plain(learnParts(trainerOf, [part(0, 24), part(24, 48)])), whole)
    }
  })
})

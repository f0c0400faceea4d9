/** Scenarios whose nodes learn a network with a rule for each layer. */
import assert from 'node:assert/strict'
import { parseScenario, ScenarioError, type SimulateOptions, simulate } from '../../../sim/index.js'
import { networkLearner } from '../../../src/l2l/execution.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec } from '../../../src/nn/spec/network-spec.js'

const DIMENSION = 6
const KEYS = { nodes: 4, inputs: 400, batch: 20, period: 20, stream: 'logistic', dimension: DIMENSION, checks: true }
const network: NetworkSpec = {
  layers: parseModel({ model: 'mlp', hidden: [5] }, 'test'),
  sample: { kind: 'features', shape: [DIMENSION] },
  target: { kind: 'class', classes: 2 }
}

describe('a rule for each layer in a scenario', () => {
  let learner: SimulateOptions['learner']
  before(async () => {
    learner = await networkLearner(network, KEYS.batch, { backend: 'cpu' })
  })
  const lossOf = (rule: string, keys: object = {}) => {
    const { violations, averageLoss } = simulate(parseScenario({ ...KEYS, ...keys, rule }, 'test'), { learner })
    assert.deepEqual(violations, [])
    return averageLoss
  }

  it('steps each layer by its rule, and keeps all invariants', () => {
    const momentum = lossOf('momentum')
    assert.equal(lossOf('hidden*:momentum;*:momentum'), momentum)
    const mixed = lossOf('hidden*:adagrad;*:momentum')
    assert.ok(mixed !== momentum && mixed < Math.log(2), `a loss of ${mixed}`)
    lossOf('hidden*:adagrad;*:momentum', { sums: 'lattice', journal: true, faults: { crashShare: 0.5 } })
  })

  it('is refused with the layers that there are', () => {
    const run = (rule: string, options: SimulateOptions = { learner }) =>
      simulate(parseScenario({ ...KEYS, rule }, 'test'), options)
    assert.throws(() => run('embedding:adagrad;*:momentum'), /no layer that is trained fits 'embedding': .*hidden0/)
    assert.throws(() => run('hidden*:adagrad', {}), /fits 'hidden\*': give names, kinds or patterns of weights/)
    assert.throws(() => run('hidden*:adagra;*:momentum'), ScenarioError)
    assert.throws(() => run('hidden*:adagra;*:momentum'), /test: rule: did you mean adagrad\?/)
    assert.throws(() => run('hidden*:theory;*:momentum'), /rule: expected one of/)
    assert.throws(() => run(':adagrad'), /expected LAYERS:NAME/)
    assert.throws(() => run('adagra'), /did you mean adagrad\? \(expected one of .*theory\) \(given: "adagra"\)/)
  })
})

/** How many gradients of each peer are used. */
import assert from 'node:assert/strict'
import { simulate } from '../../../sim/index.js'
import { parseScenario } from '../../../sim/scenario.js'
import { ToyPath } from '../../support/toy-path.js'

const quota = { perPeriod: 2, burst: 10 }
describe('a node with a quota', () => {
  it('neither uses nor passes on more gradients, reports that once, and uses them when they are allowed', () => {
    const path = new ToyPath({ inputs: 64, batch: 60, middle: { quota } })
    const [, b, c] = path.nodes
    path.learn(0, 0, 8)
    assert.deepEqual([b.gradients, c.gradients], [8, 8])
    path.learn(0, 8, 4)
    path.learn(0, 12, 1)
    assert.deepEqual([b.gradients, c.gradients], [8, 8], 'the last allowed sum is used')
    assert.deepEqual(path.effects, [{ kind: 'excessive', from: 'a' }])
    path.learn(0, 13, 1, 8)
    assert.deepEqual([b.gradients, c.gradients], [14, 14])
  })

  it('adopts a predictor that follows by more gradients if the gate accepts it', () => {
    const path = new ToyPath({ inputs: 64, batch: 16, middle: { quota } })
    const [a, b] = path.nodes
    path.learn(0, 0, 16)
    assert.equal(a.predictor.id.updates, 1)
    assert.equal(b.predictor.id.digest, a.predictor.id.digest)
  })
})

describe('simulated nodes with a quota', () => {
  const scenario = {
    ...{
      nodes: 16,
      inputs: 5000,
      batch: 64,
      interval: 1,
      period: 2,
      latency: 0.5,
      phases: 'spread',
      labelNoise: 0.1
    },
    ...{ topology: 'tree', sums: 'lattice', seed: 3 }
  }
  const lossWith = (more: object): number => {
    const { averageLoss, violations } = simulate(parseScenario({ ...scenario, ...more }, 'test'))
    assert.deepEqual(violations, [])
    return averageLoss
  }

  it('learn the same as without, if they contribute half of it', () => {
    assert.equal(lossWith({ trust: { rate: 2000 } }), lossWith({}))
  })
})

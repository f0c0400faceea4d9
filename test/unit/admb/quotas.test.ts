/** How many gradients of each peer are used. */
import assert from 'node:assert/strict'
import { simulate } from '../../../sim/index.js'
import { parseScenario } from '../../../sim/scenario.js'
import type { Header } from '../../../src/admb/index.js'
import { Quotas } from '../../../src/admb/trust/quotas.js'
import { toyStart } from '../../support/toy.js'
import { ToyPath } from '../../support/toy-path.js'

const quota = { perPeriod: 2, burst: 10 }
const initial = toyStart(64)
const NAMES = 'abcdef'

/** A sum or batch of the contributors with these numbers, a segment of each. */
const of = (count: number, ...contributors: number[]) => ({
  count,
  coverage: { contributors, segments: contributors.map(() => 1) }
})
const header = (updates: number, batch: ReturnType<typeof of>, origin = 'f'): Header => ({
  ...batch,
  id: { ...initial.id, updates, origin },
  parent: { ...initial.id, updates: updates - 1 }
})

describe('quotas', () => {
  let quotas: Quotas
  beforeEach(() => {
    quotas = new Quotas(quota, contributor => NAMES[contributor])
  })
  /** The most that may be used of contributors. */
  const most = (...contributors: number[]): number => {
    let count = 0
    while (quotas.allows([of(count + 1, ...contributors)])) count++
    return count
  }

  it('allow what a peer may save up, and its rate since', () => {
    assert.equal(most(0), 10)
    quotas.elapse(3)
    assert.deepEqual([most(0), most(0, 1), most(0, 1, 2)], [16, 32, 48])
  })

  it('do not grow beyond what may be saved up when the predictor changes', () => {
    quotas.elapse(100)
    assert.equal(most(0), 210)
    quotas.switchPredictor([])
    assert.equal(most(0), 10)
  })

  it('charge a sum that is part of the batch to its contributors, and the rest to the others', () => {
    const [one, other] = [{}, {}]
    quotas.received(one, of(3, 0))
    quotas.received(one, of(8, 0))
    quotas.received(other, of(4, 1, 2))
    quotas.switchPredictor([header(1, of(15, 0, 1, 2, 3))])
    assert.deepEqual([most(0), most(1), most(2), most(3)], [2, 8, 8, 7])
    quotas.elapse(1)
    assert.deepEqual([most(0), most(1), most(3)], [4, 10, 9])
  })

  it('charge the sum that was sent when the batch was made, if a later one is not part of it', () => {
    const edge = {}
    quotas.received(edge, of(3, 0))
    quotas.received(edge, { count: 8, coverage: { contributors: [0], segments: [2] } })
    quotas.switchPredictor([header(1, of(5, 0, 1))])
    assert.deepEqual([most(0), most(1)], [7, 8])
  })

  it('charge the batch of a rival once for what both contain', () => {
    quotas.received({}, of(8, 0))
    quotas.switchPredictor([header(1, of(12, 0, 1))])
    assert.deepEqual([most(0), most(1)], [2, 6])
    quotas.switchPredictor([header(1, of(12, 0, 2), 'e')])
    assert.deepEqual([most(0), most(1), most(2)], [2, 10, 6])
  })

  it('charge each batch of a chain', () => {
    quotas.switchPredictor([header(2, of(4, 0, 1)), header(1, of(6, 0))])
    assert.deepEqual([most(0), most(1)], [2, 8])
  })
})

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

/** Networks that choose b themselves. */
import assert from 'node:assert/strict'
import { parseScenario, ScenarioError } from '../../../sim/scenario.js'
import { simulate } from '../../../sim/simulate.js'
import { AdmbNode, startingPredictor } from '../../../src/admb/index.js'
import {
  AdaptiveBatch,
  carry,
  createAveraging,
  createLearner,
  createRule,
  digest
} from '../../../src/learning/index.js'

const RANGE = { batch: 8, batchMax: 512 }

/** b of all nodes at the end. */
function chosen(settings: object): number[] {
  const nodes: AdmbNode[] = []
  const scenario = parseScenario({ inputs: 2500, carry: 64, ...RANGE, ...settings }, 'test')
  const { violations } = simulate(scenario, {
    quiesce: true,
    node: options => {
      const node = new AdmbNode(options)
      nodes.push(node)
      return node
    }
  })
  assert.deepEqual(violations, [])
  return nodes.map(({ batch }) => batch)
}

describe('a network that chooses b', () => {
  it('agrees on it, and chooses a larger one for longer delays', () => {
    const [short, long] = [0.2, 8].map(latency => new Set(chosen({ latency })))
    assert.equal(short.size, 1)
    assert.equal(long.size, 1)
    assert.ok([...long][0] > 2 * [...short][0], `${[...long]} and ${[...short]}`)
  })

  it('keeps to the least b without neighbours, for which an update waits', () => {
    assert.deepEqual(chosen({ nodes: 1 }), [8])
  })

  it('refuses bounds that exclude each other, and algorithms with a fixed b', () => {
    assert.throws(() => parseScenario({ batch: 9, batchMax: 8 }, 'test'), /batchMax: 8 is less than batch \(9\)/)
    assert.throws(() => parseScenario({ batchMax: 1000, algorithm: 'dmb' }, 'test'), ScenarioError)
  })

  it('refuses an update from fewer gradients than the b of its parent, with quotas', () => {
    class Hasty extends AdaptiveBatch {
      override of(): number {
        return 1
      }
    }
    const learner = createLearner({ model: 'logistic', dimension: 2 })
    const parts = { rule: createRule(), averaging: createAveraging(), digest }
    const [honest, hasty] = [AdaptiveBatch, Hasty].map((Rule, i) => {
      const batch = new Rule({ min: 1, max: 64 }, learner.layout)
      const { learner: carrying, recipe } = carry({ learner, recipe: parts }, [batch])
      const { layout } = carrying
      const initial = startingPredictor([...learner.initial(), Float32Array.of(32)], recipe)
      return new AdmbNode({
        ...recipe,
        self: 'ab'[i],
        incarnation: 1,
        layout,
        initial,
        batch,
        quota: { perPeriod: 100, burst: 100 }
      })
    })
    honest.connect(1, 1, 'b')
    hasty.connect(1, 1, 'a')
    for (let round = 0; round < 3; round++) {
      for (const [from, to] of [
        [honest, hasty],
        [hasty, honest]
      ]) {
        const frame = from.frame(1)
        if (frame) to.receive(1, frame)
      }
      if (round === 1) {
        hasty.accumulator[0][0] += 1
        hasty.added(1)
      }
    }
    assert.equal(honest.predictor.id.updates, 0)
    const [effect] = honest.takeEffects()
    assert.equal(effect.kind === 'refused' && effect.reason, 'batch of 1 gradients; at least 32 are required')
  })
})

/** The bound of influence at a node: what it sends is within the bound, and what exceeds the bound is refused. */

import assert from 'node:assert/strict'
import { AdmbNode, type AdmbOptions, nextPredictor, sameId, startingPredictor } from '../../../src/admb/index.js'
import { carryingRecipe, InfluenceBound } from '../../../src/learning/index.js'
import { SumBlock } from '../../../src/numeric/sums.js'
import { Forger } from '../../support/forged-frames.js'
import { exchange, toy, toyLayout } from '../../support/toy.js'

const INPUTS = 4
/** Only the first block is bounded. */
const inner = { blocks: toyLayout(INPUTS).blocks.map((block, b) => ({ ...block, isExact: b > 0 })) }
const bound = new InfluenceBound(inner)
const layout = { blocks: [...inner.blocks, { name: 'influence', length: 1 }] }
const recipe = carryingRecipe(toy, [bound])
const ONE = { prefix: 'p', size: 1, segments: 1 }

/** A sum whose first block is a vector of this length. */
function sumOf(length: number, votes = 0): Float32Array[] {
  const sum = layout.blocks.map(block => new Float32Array(block.length))
  sum[0][0] = length
  sum[bound.index][0] = votes
  return sum
}

/** A node whose predictor has the scale 6: its first batch, of four gradients, has a norm of 4. */
function nodeOf(self: string, options: Partial<AdmbOptions> = {}): AdmbNode {
  const { rule } = { ...recipe, ...options }
  const start = startingPredictor(
    layout.blocks.map(({ length }) => new Float32Array(length)),
    { ...recipe, rule }
  )
  const sum = sumOf(4)
  const initial = nextPredictor(
    start,
    { sum: sum.map(block => new SumBlock(block)), count: 4 },
    { origin: 'x', incarnation: 1, nonce: 0 },
    { ...recipe, rule }
  )
  const influence = bound
  return new AdmbNode({ ...recipe, self, incarnation: 1, layout, initial, batch: 4, carry: 9, influence, ...options })
}

function learn(node: AdmbNode, length: number): void {
  node.accumulator[0][0] += length
  node.added(1)
}

describe('the bound of influence', () => {
  it('refuses a sum that exceeds it, naming its only contributor, and uses none of it', () => {
    const node = nodeOf('victim')
    const forger = new Forger(node, 1)
    const { id } = node.predictor
    const [reason] = forger.sum(sumOf(1000), 3, ONE)
    assert.match(reason, /^3 gradients of p0 have a sum of norm 1\.00e\+3, 96\.2 times the bound$/)
    assert.match(forger.sum(sumOf(1000), 3, { ...ONE, size: 2 })[0], /^3 gradients of 2 contributors .* 68\.0 times/)
    assert.deepEqual([node.gradients, forger.sum(sumOf(6), 3, ONE), node.gradients], [0, [], 3])
    assert.ok(sameId(node.predictor.id, id))
  })

  it('refuses more votes than inputs', () => {
    const forger = new Forger(nodeOf('victim'), 1)
    for (const votes of [4, -1, 1e30])
      assert.match(forger.sum(sumOf(1, votes), 3, ONE)[0], /^3 gradients with .* votes/)
    assert.deepEqual(forger.sum(sumOf(1, 3), 3, ONE), [])
  })

  it('refuses steps that exceed it', () => {
    const victim = nodeOf('victim')
    const hostile = nodeOf('hostile', { influence: undefined })
    victim.connect(1, 1, 'hostile')
    hostile.connect(1, 1, 'victim')
    exchange(hostile, victim)
    victim.takeEffects()
    for (let i = 0; i < 4; i++) learn(hostile, 1000)
    exchange(hostile, victim)
    const reasons = victim.takeEffects().flatMap(effect => (effect.kind === 'refused' ? [effect.reason] : []))
    assert.match(reasons[0], /times the bound$/)
    assert.equal(victim.predictor.id.updates, 1)
  })
})

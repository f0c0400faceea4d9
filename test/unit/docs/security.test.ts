/**
 * docs/explanation/security.md against the code: what a malicious peer can do. A fix for one of these must update the page. The property tests
 * cover what such a peer cannot do.
 */
import assert from 'node:assert/strict'
import { simulatedSigner } from '../../../sim/engine/random.js'
import { AdmbNode, encodeSaved, shapesOf, startingPredictor } from '../../../src/admb/index.js'
import { ContributorTable } from '../../../src/admb/state/coverage.js'
import { Authenticity } from '../../../src/admb/trust/authenticity.js'
import { createAveraging, createLearner, createRule, digest } from '../../../src/learning/index.js'

const LEARNER = createLearner({ model: 'logistic', dimension: 4 })
const RECIPE = { rule: createRule({ name: 'adagrad' }), averaging: createAveraging({ name: 'tail' }), digest }
const SHAPES = shapesOf(LEARNER.layout, RECIPE)
const TABLE = new ContributorTable()
const BATCH = 2

function createNode(self: string): AdmbNode {
  const initial = startingPredictor(LEARNER.initial(), RECIPE)
  const signer = simulatedSigner(self)
  return new AdmbNode({
    ...RECIPE,
    self,
    incarnation: 1,
    layout: LEARNER.layout,
    initial,
    batch: BATCH,
    carry: 16,
    signer
  })
}

/** A fabricated predictor with another peer as origin, attested by the sender. */
function forged(updates: number): Uint8Array {
  const parameters = [Float32Array.of(7, 7, 7, 7)]
  const state = SHAPES.state.blocks.map(({ length }) => new Float32Array(length))
  const id = { updates, origin: 'honest', incarnation: 1, nonce: 0, digest: digest([parameters, parameters, state]) }
  const predictor = { id, parameters, average: parameters, state }
  const attestation = new Authenticity(simulatedSigner('mallory'), 'mallory', TABLE).attestation(id, undefined)
  return encodeSaved({ predictor, lineage: [], attestation }, SHAPES, TABLE)
}

/** Learns an input whose gradient has the given first element. */
function learn(node: AdmbNode, gradient = 1): void {
  node.accumulator[0][0] += gradient
  node.added(1)
}

describe('docs/explanation/security.md: statements', () => {
  it('a fabricated predictor with more updates replaces any other', () => {
    const node = createNode('victim')
    for (let input = 0; input < 5 * BATCH; input++) learn(node)
    assert.equal(node.predictor.id.updates, 5)
    node.offer(forged(1_000_000), 'mallory')
    assert.equal(node.predictor.id.origin, 'honest')
    assert.equal(node.predictor.parameters[0][0], 7)
  })

  it('enormous gradients close the session of their sender and stop no other peer', () => {
    const [mallory, victim, friend] = [createNode('mallory'), createNode('victim'), createNode('friend')]
    mallory.connect(1, 0, 'victim')
    victim.connect(1, 0, 'mallory')
    victim.connect(2, 0, 'friend')
    friend.connect(1, 0, 'victim')
    learn(mallory, 3e38)
    for (let round = 0; round < 8; round++) {
      for (const node of [mallory, victim, friend]) node.tick()
      const frames = [mallory.frame(1), victim.frame(1), victim.frame(2), friend.frame(1)]
      if (frames[0]) victim.receive(1, frames[0])
      if (frames[1]) mallory.receive(1, frames[1])
      if (frames[2]) friend.receive(1, frames[2])
      if (frames[3]) victim.receive(2, frames[3])
    }
    assert.ok(victim.inspect.neighbourSum(1))
    for (let input = 1; input < BATCH; input++) learn(victim)
    const refused = victim.takeEffects().filter(({ kind }) => kind === 'refused')
    assert.deepEqual(
      refused.map(effect => 'edge' in effect && effect.edge),
      [1]
    )
    assert.equal(victim.inspect.neighbourSum(1), undefined)
    learn(victim)
    assert.equal(victim.predictor.id.updates, 1)
    assert.ok(Number.isFinite(victim.predictor.parameters[0][0]))
  })

  it('own gradients that overflow stop a peer', () => {
    const node = createNode('reckless')
    assert.throws(
      () => {
        for (let input = 0; input < BATCH; input++) learn(node, 3e38)
      },
      { code: 'ERR_DIVERGENCE' }
    )
  })
})

/** Predictors of small networks are judged by the losses of own inputs, as those of linear models are. */
import assert from 'node:assert/strict'
import { startingPredictor } from '../../../src/admb/index.js'
import { createParser, type Rows } from '../../../src/data/index.js'
import { type Blocks, LossGate, type RuleState, zeros } from '../../../src/learning/index.js'
import { rowCopy } from '../../../src/peer/late-labels.js'
import { createNode } from '../../../src/peer/learner-node.js'
import { type LearningParts, learningParts } from '../../../src/task/learning-parts.js'
import type { NetworkLearningSpec } from '../../../src/task/learning-spec.js'
import { createPeerTask } from '../../../src/task/task.js'
import { learnerInit } from '../../support/learner-init.js'

const BATCH = 16

/** Class 1 inside a circle. */
function circle(from: number, to: number): Rows {
  const line = (i: number) => {
    const [x, y] = [Math.sin(7 * i), Math.cos(11 * i)]
    return `{"label": ${x * x + y * y < 1 ? 1 : 0}, "features": [${x}, ${y}, 1]}\n`
  }
  const text = Array.from({ length: to - from }, (_, i) => line(from + i)).join('')
  return createParser('jsonl', { dimension: 3 }).push(Buffer.from(text))
}

async function specOf(hidden: number[]): Promise<NetworkLearningSpec> {
  const model = { model: 'mlp', hidden } as const
  const rule = { name: 'adam', step: 0.02 } as const
  return (await createPeerTask({ model, features: 3, classes: 2, rule, sums: 'exact' })).spec as NetworkLearningSpec
}

describe('the loss gate of a network', function () {
  this.timeout(30_000)
  let parts: LearningParts
  let trained: Blocks
  const judged = (parameters: Blocks) => ({ parameters, average: parameters })

  before(async () => {
    parts = await learningParts(await specOf([8]), { backend: 'cpu' })
    const { learner, recipe } = parts
    const rows = circle(0, 3000)
    let state: RuleState = startingPredictor(learner.initial(), recipe)
    for (let row = 0; row + BATCH <= rows.size; row += BATCH) {
      const sum = zeros(learner.layout)
      learner.addGradient(state.parameters, rows, row, row + BATCH, sum)
      state = recipe.rule.step(state, sum, BATCH, row / BATCH)
    }
    trained = state.parameters
  })

  it('refuses what is worse than none, and accepts what is better', () => {
    const gate = new LossGate(parts.learner)
    const rows = circle(5000, 5300)
    for (let row = 0; row < rows.size; row++) gate.add(rowCopy(rows, row))
    const reversed = trained.map(block => block.map(value => -value))
    assert.equal(gate.accepts(judged(reversed), judged(trained)), false)
    const initial = parts.learner.initial()
    assert.ok(gate.accepts(judged(trained), judged(initial)))
    assert.ok(gate.accepts(judged(initial), judged(trained)), 'no worse than none')
  })

  it('is there for small networks only', async () => {
    const node = async (hidden: number[]) => {
      const spec = await specOf(hidden)
      const init = learnerInit({ spec, stream: undefined })
      return createNode(init, await learningParts(spec, { backend: 'cpu' }), undefined)
    }
    assert.ok((await node([8])).gate)
    assert.equal((await node([1024, 1024])).gate, undefined)
  })
})

/** The blocks that score inputs, for any number of rows between updates. */
import assert from 'node:assert/strict'
import { AdmbNode, startingPredictor } from '../../../src/admb/index.js'
import { ServingBlocks } from '../../../src/peer/serving-blocks.js'
import { learningParts } from '../../../src/task/learning-parts.js'

const FEATURES = 40

describe('blocks for rows', () => {
  it('are those of the whole average at the features of the rows, of few rows and of many', async () => {
    const spec = {
      model: 'logistic',
      dimension: FEATURES,
      rule: { name: 'adagrad' },
      averaging: { name: 'tail' },
      batch: 4,
      features: { constant: false, scale: 'none' }
    } as const
    const { learner, recipe } = await learningParts(spec)
    const initial = startingPredictor(learner.initial(), recipe)
    const node = new AdmbNode({
      ...recipe,
      self: 'one',
      incarnation: 1,
      nonce: 1,
      layout: learner.layout,
      initial,
      batch: 4
    })
    const serving = new ServingBlocks({ node, averaging: recipe.averaging, learner, predictWith: 'average' })
    let seed = 1
    const next = (limit: number) => {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 1
      return seed % limit
    }
    for (let round = 0; round < 200; round++) {
      const size = 1 + next(30)
      const offsets = Int32Array.from({ length: size + 1 }, (_, row) => 3 * row)
      const indices = Int32Array.from({ length: 3 * size }, () => next(FEATURES))
      const values = Float32Array.from({ length: 3 * size }, () => 1)
      const labels = Float64Array.from({ length: size }, () => next(2))
      const rows = { size, offsets, indices, values, labels }
      const [whole] = serving.whole.map(block => block.slice())
      const [read] = serving.forRows(rows, 0, size)
      for (const index of indices) assert.equal(read[index], whole[index], `round ${round}`)
      // A second call at the same predictor, for other rows.
      const [again] = serving.forRows(rows, size - 1, size)
      for (const index of indices.slice(-3)) assert.equal(again[index], whole[index], `round ${round}`)
      const learned = Math.min(size, Math.max(1, node.room), next(5))
      learner.addGradient(node.predictor.parameters, rows, 0, learned, node.accumulator)
      if (learned > 0) node.added(learned)
      node.takeEffects()
    }
    assert.ok(node.predictor.id.updates > 20)
  })
})

/** Integer sums that are kept as bases of differences: how many may be on their way to a neighbour. */
import assert from 'node:assert/strict'
import { AdmbNode, type AdmbOptions, startingPredictor } from '../../../src/admb/index.js'
import { createAveraging, createLearner, createRule, digest, latticeRecipe } from '../../../src/learning/index.js'

const DIMENSION = 2 ** 20
const BATCH = 1000
const learner = createLearner({ model: 'logistic', dimension: DIMENSION })
const recipe = latticeRecipe(
  { rule: createRule({ name: 'adagrad' }), averaging: createAveraging({ name: 'tail' }), digest },
  { batch: BATCH }
)
const initial = startingPredictor(learner.initial(), recipe)

/** Two neighbours that know of each other. */
function pair(options: Pick<AdmbOptions, 'keptBytes'> = {}): readonly [a: AdmbNode, b: AdmbNode] {
  const [a, b] = ['a', 'b'].map(
    self =>
      new AdmbNode({
        ...recipe,
        layout: learner.layout,
        initial,
        batch: BATCH,
        isOrdered: true,
        incarnation: 1,
        self,
        ...options
      })
  )
  for (const end of [a, b]) end.connect(1, 9, 'neighbour')
  for (let round = 0; round < 2; round++) {
    send(a, b)
    send(b, a)
  }
  return [a, b]
}

function send(from: AdmbNode, to: AdmbNode): void {
  for (let frame = from.frame(1); frame !== undefined; frame = from.frame(1)) to.receive(1, frame)
}

/** A gradient in each period, until the node waits: sums that arrived without an acknowledgement, `most` at most. */
function sumsOnTheirWay([a, b]: readonly [AdmbNode, AdmbNode], most: number, features: number): number {
  const before = b.inspect.neighbourSum(1)?.count ?? 0
  for (let n = 0; n < most; n++) {
    for (let i = 0; i < features; i++) a.accumulator[0][i] += 0.5
    a.added(1)
    a.tick()
    send(a, b)
    if (b.inspect.neighbourSum(1)?.count !== before + n + 1) return n
  }
  return most
}

describe('integer sums on their way to a neighbour', () => {
  it('are limited by the memory that they take, which is little if gradients are sparse', () => {
    assert.equal(sumsOnTheirWay(pair(), 40, 50), 40)
  })

  it('are fewer if gradients are dense, and continue when they are acknowledged', () => {
    const nodes = pair({ keptBytes: 4 * DIMENSION })
    const [a, b] = nodes
    const first = sumsOnTheirWay(nodes, 40, DIMENSION)
    assert.ok(first >= 2 && first <= 4, `${first} sums`)
    b.tick()
    send(b, a)
    a.tick()
    send(a, b)
    assert.equal(b.inspect.neighbourSum(1)?.count, first + 1)
    assert.ok(sumsOnTheirWay(nodes, 40, DIMENSION) >= 1)
  })

  it('are one or two, whatever memory they take', () => {
    const sums = sumsOnTheirWay(pair({ keptBytes: 0 }), 40, DIMENSION)
    assert.ok(sums >= 1 && sums <= 2, `${sums} sums`)
  })
})

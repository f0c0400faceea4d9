/** The list of carried blocks: each block is found by its name, and does the same whichever others are there. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  AdaptiveBatch,
  addedClasses,
  type Blocks,
  ClassTable,
  carry,
  carryingLayout,
  createAveraging,
  createLearner,
  createRule,
  digest,
  InfluenceBound,
  latticeRecipe,
  propose
} from '../../../src/learning/index.js'
import { share } from '../../support/runs.js'

const NAMED = ['a', 'b']
const CLASSES = 4
const recipes = {
  exact: { rule: createRule({ name: 'adagrad' }), averaging: createAveraging({ name: 'tail' }), digest },
  integers: latticeRecipe(
    { rule: createRule({ name: 'momentum', step: 0.5 }), averaging: createAveraging({ name: 'uniform' }), digest },
    { batch: 8 }
  )
}

/** A softmax model with some carried blocks, and what an update with these votes makes of each of them. */
function outcomeOf(has: { classes: boolean; influence: boolean; batch: boolean }, sums: keyof typeof recipes) {
  const plain = createLearner({
    model: 'softmax',
    dimension: 3,
    classes: CLASSES,
    named: has.classes ? NAMED.length : CLASSES
  })
  const classes = has.classes ? new ClassTable(NAMED, CLASSES - NAMED.length, plain.layout) : undefined
  const influence = has.influence ? new InfluenceBound(plain.layout) : undefined
  const batch = has.batch
    ? new AdaptiveBatch({ min: 8, max: 64 }, carryingLayout(plain.layout, [influence]))
    : undefined
  const { learner, recipe } = carry({ learner: plain, recipe: recipes[sums] }, [classes, influence, batch])
  const { rule, averaging } = recipe
  const parameters = learner.initial()
  const state = rule.stateLayout(learner.layout).blocks.map(({ length }) => new Float32Array(length))
  const sum: Blocks = parameters.map(({ length }) => new Float32Array(length))
  sum[0].set([3, -2, 0, 1])
  if (classes) propose(classes.of(sum), 'new', 0)
  if (influence) influence.of(sum)[0] = 8
  batch?.countUnshared(sum, 8)
  const stepped = rule.step({ parameters, state }, sum, 8, 0).parameters
  const average = averaging.average(parameters, stepped, 0, parameters)
  const grid = rule.grid?.({ parameters, state }, 0)
  assert.deepEqual(
    [stepped.length, average.length, grid?.length ?? stepped.length],
    Array(3).fill(learner.layout.blocks.length)
  )
  for (const [k, { isExact }] of learner.layout.blocks.entries()) {
    if (!isExact) continue
    assert.deepEqual(average[k], stepped[k])
    if (grid) assert.deepEqual(grid[k], Int8Array.of(0))
  }
  return {
    names: learner.layout.blocks.map(({ name }) => name),
    weights: [stepped[0], average[0]],
    classes: classes && addedClasses(classes.of(stepped)),
    influence: influence && [...influence.of(stepped)],
    batch: batch?.of(stepped)
  }
}

describe('carried blocks', () => {
  it('are in the order of the list, and each does what it does alone', () => {
    const has = fc.record({ classes: fc.boolean(), influence: fc.boolean(), batch: fc.boolean() })
    const sums = fc.constantFrom('exact' as const, 'integers' as const)
    fc.assert(
      fc.property(has, sums, (blocks, kind) => {
        // Integer sums exclude new classes.
        const given = { ...blocks, classes: blocks.classes && kind === 'exact' }
        const { names, weights, ...outcome } = outcomeOf(given, kind)
        const of = (name: keyof typeof given) =>
          given[name] ? outcomeOf({ classes: false, influence: false, batch: false, [name]: true }, kind) : undefined
        const carried = (['classes', 'influence', 'batch'] as const).filter(name => given[name])
        assert.deepEqual(names, ['weights', ...carried])
        assert.deepEqual(weights, outcomeOf({ classes: false, influence: false, batch: false }, kind).weights)
        assert.deepEqual(outcome, {
          classes: of('classes')?.classes,
          influence: of('influence')?.influence,
          batch: of('batch')?.batch
        })
        if (given.classes) assert.deepEqual(outcome.classes, ['new'])
        if (given.influence) assert.ok((outcome.influence as number[])[0] > 0)
        if (given.batch) assert.ok(outcome.batch !== undefined && outcome.batch >= 8)
      }),
      { numRuns: share(60) }
    )
  })
})

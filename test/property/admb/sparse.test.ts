import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  AdmbNode,
  isFragment,
  nextPredictor,
  type Predictor,
  type Recipe,
  startingPredictor
} from '../../../src/admb/index.js'
import {
  AdaptiveBatch,
  type AveragingSpec,
  type Blocks,
  carryingRecipe,
  createAveraging,
  createRule,
  latticeRecipe,
  lazyAveraging,
  type RuleSpec,
  roundedRecipe,
  treeDigest
} from '../../../src/learning/index.js'
import { sumOf } from '../../../src/numeric/sums.js'
import { share } from '../../support/runs.js'

/** Long enough for sparse updates. */
const DIMENSION = 2 ** 14 + 5
const WEIGHTS = { blocks: [{ name: 'weights', length: DIMENSION }] }

const rules: readonly RuleSpec[] = [
  { name: 'adagrad' },
  { name: 'adagrad', maxLossDecrease: 0.01, forget: 0.1 },
  { name: 'adagrad', l2: 0.02 },
  { name: 'mirror-descent' },
  { name: 'momentum' },
  { name: 'adagrad', radius: 1 }
]
const averages: readonly AveragingSpec[] = [
  { name: 'tail' },
  { name: 'uniform' },
  { name: 'exponential', halfLife: 3 },
  { name: 'none' }
]

/** A recipe, and the lengths of the blocks of its parameters. */
interface Case {
  readonly name: string
  readonly recipe: Recipe
  readonly initial: Blocks
}

function caseOf(
  rule: RuleSpec,
  average: AveragingSpec,
  variant: 'plain' | 'dense average' | 'lattice' | 'rounded' | 'adaptive'
): Case {
  const name = `${JSON.stringify(rule)} ${average.name} ${variant}`
  const averaging = lazyAveraging(createAveraging(average))
  const digest = treeDigest
  const weights = new Float32Array(DIMENSION)
  const plain = { rule: createRule(rule), averaging, digest }
  if (variant === 'dense average')
    return { name, recipe: { ...plain, averaging: createAveraging(average) }, initial: [weights] }
  const lattice = latticeRecipe(plain, { batch: 4 })
  if (variant === 'lattice') return { name, recipe: lattice, initial: [weights] }
  if (variant === 'rounded') {
    return { name, recipe: roundedRecipe(lattice, WEIGHTS), initial: [weights] }
  }
  if (variant === 'adaptive') {
    return {
      name,
      recipe: carryingRecipe(plain, [new AdaptiveBatch({ min: 1, max: 64 }, WEIGHTS)]),
      initial: [weights, Float32Array.of(1)]
    }
  }
  return { name, recipe: plain, initial: [weights] }
}

const cases = fc
  .record({
    rule: fc.constantFrom(...rules),
    average: fc.constantFrom(...averages),
    variant: fc.constantFrom('plain', 'dense average', 'lattice', 'rounded', 'adaptive')
  })
  .map(({ rule, average, variant }) => caseOf(rule, average, variant as 'plain'))

/** A batch: elements of the first block, or of every block of the model if it is dense. */
const batches = fc.record({
  parent: fc.nat(),
  count: fc.integer({ min: 1, max: 8 }),
  isDense: fc.boolean().map(isDense => isDense),
  elements: fc.array(fc.tuple(fc.nat(DIMENSION - 1), fc.integer({ min: -9, max: 9 })), { minLength: 1, maxLength: 40 }),
  votes: fc.nat(8),
  read: fc.nat()
})

function blocksOf(initial: Blocks, elements: readonly (readonly [number, number])[], isDense: boolean, votes: number) {
  const sum = initial.map(({ length }) => new Float32Array(length))
  if (isDense) for (let i = 0; i < DIMENSION; i++) sum[0][i] = (i % 5) - 2
  for (const [i, value] of elements) sum[0][i] += value
  if (sum.length > 1) sum[1][0] = votes
  return sum
}

const copied = ({ parameters, average, state }: Predictor) =>
  [parameters, average, state].map(blocks => blocks.map(block => block.slice()))

/** The same recipe without sparse updates. */
const dense = ({ rule, ...rest }: Recipe): Recipe => ({ ...rest, rule: { ...rule, isLocal: false } })

const CONTRIBUTOR = { origin: 'a', incarnation: 1, nonce: 0 }

describe('updates of large sparse models', () => {
  it('give the bits of dense updates, also those of rivals, and digests from scratch', () => {
    fc.assert(
      fc.property(cases, fc.array(batches, { maxLength: 12 }), ({ recipe, initial }, drawn) => {
        const start = startingPredictor(initial, recipe)
        const sparse = [start]
        const expected = [start]
        const contents = [copied(start)]
        for (const { parent, count, isDense, elements, votes, read } of drawn) {
          // Mostly the newest one is the parent, otherwise an earlier one.
          const from = parent % 3 === 0 ? parent % sparse.length : sparse.length - 1
          const sum = blocksOf(initial, elements, isDense && parent % 4 === 1, votes)
          const batch = { sum: sumOf(sum), count, contributorCount: 3 }
          sparse.push(nextPredictor(sparse[from], batch, CONTRIBUTOR, recipe))
          expected.push(nextPredictor(expected[from], batch, CONTRIBUTOR, dense(recipe)))
          const next = expected[expected.length - 1]
          contents.push(copied(next))
          assert.deepEqual(sparse[sparse.length - 1].id, next.id)
          const again = read % sparse.length
          assert.deepEqual(copied(sparse[again]), contents[again])
        }
        for (const [i, predictor] of sparse.entries()) {
          assert.deepEqual(copied(predictor), contents[i])
          assert.equal(recipe.digest([predictor.parameters, predictor.average, predictor.state]), predictor.id.digest)
        }
      }),
      { numRuns: share(150) }
    )
  })
})

describe('nodes with a large sparse model', () => {
  it('send a predictor whole while it is updated', () => {
    const recipe = { rule: createRule(), averaging: lazyAveraging(createAveraging()), digest: treeDigest }
    const layout = { blocks: [{ name: 'weights', length: DIMENSION }] }
    const initial = startingPredictor([new Float32Array(DIMENSION)], recipe)
    const options = { ...recipe, incarnation: 1, layout, initial, batch: 1, fragmentBytes: DIMENSION }
    const [a, b] = ['a', 'b'].map(self => new AdmbNode({ ...options, self }))
    const learn = (i: number) => {
      a.accumulator[0][i] += 1
      a.added(1)
    }
    for (let i = 0; i < 100; i++) learn(i)
    a.connect(1, 1, 'b')
    b.connect(1, 1, 'a')
    const { id } = a.predictor
    for (let round = 0; round < 20 && b.predictor.id.updates === 0; round++) {
      for (const [from, to] of [
        [b, a],
        [a, b]
      ]) {
        from.tick()
        for (let frame = from.frame(1); frame; frame = from.frame(1)) {
          to.receive(1, frame)
          // Not as many that steps lead back to the predictor.
          if (from === a && isFragment(frame)) for (let i = 0; i < 3; i++) learn(50 + i)
        }
      }
      for (const effect of b.takeEffects()) assert.notEqual(effect.kind, 'refused')
    }
    assert.ok(b.predictor.id.updates >= id.updates)
  })
})

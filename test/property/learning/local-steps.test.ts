/** Local steps: an update is the weighted mean of copies that nodes step on their own, in whatever pieces their inputs come. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  averagingRule,
  type Blocks,
  createLearner,
  createRule,
  type Examples,
  LocalSteps,
  type UpdateRule
} from '../../../src/learning/index.js'

const DIMENSION = 4
const learner = createLearner({ model: 'logistic', dimension: DIMENSION, l2: 0.01 })
const rules = fc.constantFrom('adagrad', 'adam', 'momentum').map(name => createRule({ name }))
/** Inputs of a node, and where they are divided into pieces. */
const inputs = fc.array(
  fc.record({
    values: fc.array(fc.integer({ min: -8, max: 8 }), { minLength: DIMENSION, maxLength: DIMENSION }),
    label: fc.integer({ min: 0, max: 1 }),
    isDivided: fc.boolean()
  }),
  { maxLength: 40 }
)
type Input = typeof inputs extends fc.Arbitrary<(infer One)[]> ? One : never
const sizes = fc.record({ minibatch: fc.integer({ min: 1, max: 6 }), steps: fc.integer({ min: 2, max: 8 }) })

function examplesOf(given: readonly Input[]): Examples {
  return {
    size: given.length,
    labels: Float32Array.from(given, ({ label }) => label),
    offsets: Int32Array.from({ length: given.length + 1 }, (_, row) => row * DIMENSION),
    indices: Int32Array.from({ length: given.length * DIMENSION }, (_, i) => i % DIMENSION),
    values: Float32Array.from(given.flatMap(({ values }) => values.map(value => value / 4)))
  }
}

/** Parameters after learning in one process, b = minibatch; the part of a last minibatch counts as a part of its step. */
function serial(rule: UpdateRule, start: Blocks, given: readonly Input[], minibatch: number): number[] {
  const { blocks } = rule.stateLayout(learner.layout)
  let now = { parameters: start, state: blocks.map(({ length }) => new Float32Array(length)) as Blocks }
  for (let from = 0, step = 0; from < given.length; from += minibatch, step++) {
    const some = examplesOf(given.slice(from, from + minibatch))
    const sum = [new Float32Array(DIMENSION)]
    learner.addGradient(now.parameters, some, 0, some.size, sum)
    const next = rule.step(now, sum, some.size, step)
    if (some.size < minibatch) {
      const before = now.parameters[0]
      return Array.from(next.parameters[0], (weight, i) => before[i] + (some.size / minibatch) * (weight - before[i]))
    }
    now = next
  }
  return [...now.parameters[0]]
}

/** Learns by local steps. @returns the number of inputs, and the sum of what they contribute */
function contribution(local: LocalSteps, predictor: { id: { updates: number }; parameters: Blocks }, given: Input[]) {
  const examples = examplesOf(given)
  const sum = [new Float32Array(DIMENSION)]
  for (let row = 0; row < given.length; ) {
    const parameters = local.parameters(predictor)
    let end = row + 1
    while (end < given.length && !given[end].isDivided && end - row < local.room) end++
    learner.addGradient(parameters, examples, row, end, local.accumulator)
    local.added(end - row, sum)
    row = end
  }
  return sum
}

function assertClose(actual: ArrayLike<number>, expected: readonly number[]): void {
  for (const [i, weight] of expected.entries())
    assert.ok(
      Math.abs(actual[i] - weight) < 1e-4 * (1 + Math.abs(weight)),
      `${[...expected]}, but ${Array.from(actual)}`
    )
}

describe('local steps', () => {
  it('of a lone node give what one process learns with the same minibatches', () => {
    fc.assert(
      fc.property(rules, sizes, inputs, (rule, { minibatch, steps }, given) => {
        fc.pre(given.length > 0)
        const options = { batch: minibatch * steps, steps }
        const predictor = { id: { updates: 0 }, parameters: learner.initial(), state: [] }
        const sum = contribution(new LocalSteps(rule, options, learner.layout), predictor, given)
        const { parameters } = averagingRule(rule, options).step(predictor, sum, given.length, 0)
        assertClose(parameters[0], serial(rule, predictor.parameters, given, minibatch))
      })
    )
  })

  it('of several nodes give the mean of their copies, weighted by their inputs', () => {
    fc.assert(
      fc.property(rules, sizes, fc.array(inputs, { minLength: 1, maxLength: 4 }), (rule, sizes, nodes) => {
        const options = { batch: sizes.minibatch * sizes.steps, steps: sizes.steps }
        const count = nodes.reduce((all, given) => all + given.length, 0)
        fc.pre(count > 0)
        const predictor = { id: { updates: 0 }, parameters: learner.initial(), state: [] }
        const sum = [new Float32Array(DIMENSION)]
        const expected = new Array<number>(DIMENSION).fill(0)
        for (const given of nodes) {
          const [part] = contribution(new LocalSteps(rule, options, learner.layout), predictor, given)
          const copy = serial(rule, predictor.parameters, given, sizes.minibatch)
          for (let i = 0; i < DIMENSION; i++) {
            sum[0][i] += part[i]
            expected[i] += (given.length / count) * copy[i]
          }
        }
        const { parameters } = averagingRule(rule, options).step(predictor, sum, count, 0)
        assertClose(parameters[0], expected)
      })
    )
  })

  it('with momentum go on in the direction of earlier updates', () => {
    const differences = fc.array(fc.integer({ min: -64, max: 64 }), { minLength: 1, maxLength: 12 })
    const momenta = fc.constantFrom(0.25, 0.5, 0.75)
    fc.assert(
      fc.property(differences, momenta, (given, momentum) => {
        const rule = averagingRule(createRule({ name: 'adam' }), { batch: 8, steps: 4, momentum })
        const layout = { blocks: [{ name: 'weights', length: 1 }] }
        assert.deepEqual(
          rule.stateLayout(layout).blocks.map(({ length }) => length),
          [1]
        )
        const zero = () => [new Float32Array(1)]
        let now = { parameters: zero() as Blocks, state: zero() as Blocks }
        let expected = 0
        for (const [v, difference] of given.entries()) {
          now = rule.step(now, [Float32Array.of(8 * difference)], 8, v)
          // Each earlier difference counts again, less by the momentum in each update.
          const velocity = given.slice(0, v + 1).reduce((sum, d, j) => sum + momentum ** (v - j) * d, 0)
          expected -= 0.7 * (difference + momentum * velocity)
        }
        assertClose(now.parameters[0], [expected])
      })
    )
  })

  it('start at each new predictor', () => {
    fc.assert(
      fc.property(rules, sizes, inputs, inputs, (rule, { minibatch, steps }, first, second) => {
        const local = new LocalSteps(rule, { batch: minibatch * steps, steps }, learner.layout)
        contribution(local, { id: { updates: 0 }, parameters: learner.initial() }, first)
        const next = { id: { updates: 1 }, parameters: [Float32Array.of(1, -2, 3, -4)] }
        assert.equal(local.parameters(next), next.parameters)
        assert.equal(local.room, minibatch)
        const sum = contribution(local, next, second)
        if (second.length === 0) assert.deepEqual(sum, [new Float32Array(DIMENSION)])
      })
    )
  })
})

/** The regret bounds and their constants, for drawn streams, numbers of inputs and networks. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Random } from '../../../sim/engine/random.js'
import { parseScenario, simulate } from '../../../sim/index.js'
import { theorem1, theorem3 } from '../../../sim/regret/bounds.js'
import { type Constants, constantsOf, theoryRule } from '../../../sim/regret/constants.js'
import { createInputs } from '../../../sim/streams/create.js'
import { createLearner } from '../../../src/learning/index.js'
import { share } from '../../support/runs.js'

const CONSTANTS = { D: 1.5, L: 2, sigma: 4 }
const near = (a: number, b: number) => assert.ok(Math.abs(a / b - 1) <= 1e-9, `${a} and ${b}`)
const sum = ([a, b]: readonly [number, number]) => a + b
/** ψ(σ²/b, m). */
const psi = (batch: number, m: number) => 2 * 1.5 ** 2 * 2 + 2 * 1.5 * (4 / Math.sqrt(batch)) * Math.sqrt(m)

describe('the bound', () => {
  const pace = fc.record({
    batch: fc.integer({ min: 1, max: 600 }),
    extra: fc.integer({ min: 0, max: 40 }),
    learners: fc.integer({ min: 1, max: 9 })
  })

  it('of Theorem 1 is ν·ψ(σ²/b, ⌈m/ν⌉) for each learner', () => {
    fc.assert(
      fc.property(pace, fc.integer({ min: 1, max: 100_000 }), ({ batch, extra, learners }, inputs) => {
        const nu = batch + extra
        const bound = sum(theorem1(CONSTANTS, { batch, inputsPerUpdate: nu, learners }, inputs))
        near(bound, learners * nu * psi(batch, Math.ceil(inputs / learners / nu)))
      })
    )
  })

  it('is the sum of Theorem 3 over one stretch, for whole numbers of updates', () => {
    fc.assert(
      fc.property(pace, fc.integer({ min: 1, max: 50 }), ({ batch, extra }, updates) => {
        const inputsPerUpdate = batch + extra
        let expected = 0
        for (let j = 1; j <= updates; j++) expected += (inputsPerUpdate / j) * psi(batch, j)
        near(sum(theorem3(CONSTANTS, { batch, inputsPerUpdate, learners: 1 }, [updates * inputsPerUpdate])), expected)
      })
    )
  })

  it('grows with the inputs and with every interruption', () => {
    const slow = { batch: 10, inputsPerUpdate: 25, learners: 1 }
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 8 }), stretches => {
        const whole = stretches.reduce((total, each) => total + each, 0)
        const bound = sum(theorem3(CONSTANTS, slow, stretches))
        assert.ok(bound >= sum(theorem3(CONSTANTS, slow, [whole])) * (1 - 1e-12))
        assert.ok(bound < sum(theorem3(CONSTANTS, slow, [...stretches, 1])))
      })
    )
  })

  const network = fc.record({
    seed: fc.nat(),
    nodes: fc.integer({ min: 2, max: 8 }),
    topology: fc.constantFrom('path', 'star', 'random'),
    phases: fc.constantFrom('aligned', 'spread'),
    labels: fc.constantFrom('ascending', 'random'),
    dimension: fc.integer({ min: 1, max: 6 }),
    batch: fc.integer({ min: 10, max: 40 }),
    latency: fc.constantFrom(0.1, 0.5, 1),
    delay: fc.constantFrom('constant', 'uniform')
  })

  for (const algorithm of ['serial', 'isolated', 'dmb', 'mawo', 'admb'] as const) {
    it(`holds for ${algorithm} with the steps of the theorem, and would not for a learner that never learns`, () => {
      const run = (values: object) => {
        const keys = { algorithm, rule: 'theory', carry: 0, inputs: 20_000, checks: false, ...values }
        return simulate(parseScenario(keys, 'test'))
      }
      fc.assert(
        fc.property(network, values => {
          const { inputs, regret, comparatorLoss, bound, boundHolds, goodInputs, boundTerms } = run(values)
          assert.equal(goodInputs, inputs)
          assert.ok(boundHolds && regret <= (bound as number), `${regret} above ${bound}`)
          assert.equal(boundTerms?.theorem, algorithm === 'admb' ? 3 : 1)
          if (boundTerms.nu <= Math.min(100, 4 * boundTerms.b) && algorithm !== 'isolated')
            assert.ok((bound as number) < (Math.LN2 - comparatorLoss) * inputs, `${bound} for ν = ${boundTerms.nu}`)
        }),
        { numRuns: share(40), endOnFailure: true }
      )
    })
  }
})

describe('the constants of a stream', () => {
  const stream = fc.record({
    seed: fc.nat(),
    stream: fc.constantFrom('logistic' as const, 'sparse' as const),
    dimension: fc.integer({ min: 2, max: 30 })
  })
  const inputsOf = ({ seed, ...options }: { seed: number; stream: 'logistic' | 'sparse'; dimension: number }) =>
    createInputs({ noise: 0, labelNoise: 0, drift: 0, inputs: 1, ...options }, new Random(seed))

  it('bound the variance and the smoothness of the gradients at any predictor', () => {
    fc.assert(
      fc.property(stream, fc.constantFrom(-100, -1, 0, 0.3, 1), (options, scale) => {
        const inputs = inputsOf(options)
        const { D, L, sigma } = constantsOf(inputs) as Constants
        const best = inputs.optimum?.[0] as Float32Array
        near(
          (2 * D) ** 2 / 2,
          best.reduce((total, weight) => total + weight * weight, 0)
        )
        const { dimension } = options
        const learner = createLearner({ model: 'logistic', dimension })
        const rows = 4000
        // At two points, on the same rows.
        const random = new Random(options.seed)
        const points = [best.map(w => scale * w), best.map(w => scale * w + 0.05 * random.normal())]
        const means = points.map(() => new Float64Array(dimension))
        let square = 0
        for (let row = 0; row < rows; row++) {
          const examples = inputs.next()
          for (const [k, point] of points.entries()) {
            const gradient = new Float32Array(dimension)
            learner.addGradient([point], examples, 0, 1, [gradient])
            for (let i = 0; i < dimension; i++) means[k][i] += gradient[i] / rows
            if (k === 0) for (const each of gradient) square += (each * each) / rows
          }
        }
        const variance = square - means[0].reduce((total, each) => total + each * each, 0)
        assert.ok(variance <= sigma ** 2 * 1.1, `${variance} above ${sigma ** 2}`)
        const norm = (a: ArrayLike<number>, b: ArrayLike<number>) =>
          Math.sqrt(Array.from({ length: dimension }, (_, i) => (a[i] - b[i]) ** 2).reduce((x, y) => x + y))
        const steepness = norm(means[0], means[1]) / norm(points[0], points[1])
        assert.ok(steepness <= L * 1.1, `${steepness} above ${L}`)
      }),
      { numRuns: share(96) }
    )
  })

  it('do not depend on what the run has drawn, and change no draw of it', () => {
    fc.assert(
      fc.property(stream, options => {
        const [one, other] = [inputsOf(options), inputsOf(options)]
        const constants = constantsOf(one)
        for (let i = 0; i < 5; i++) assert.deepEqual(one.next(), other.next())
        assert.deepEqual(constantsOf(one), constants)
      }),
      { numRuns: 5 }
    )
  })

  it('give the steps of the theorem, whatever the size of a batch', () => {
    const batches = fc.array(
      fc.record({ mean: fc.integer({ min: -9, max: 9 }), count: fc.integer({ min: 4, max: 20 }) }),
      {
        minLength: 1,
        maxLength: 12
      }
    )
    fc.assert(
      fc.property(batches, list => {
        const { D, L, sigma } = CONSTANTS
        const rule = theoryRule(CONSTANTS, 4)
        let state = {
          parameters: [new Float32Array(1)],
          state: rule
            .stateLayout({ blocks: [{ name: 'w', length: 1 }] })
            .blocks.map(block => new Float32Array(block.length))
        } as Parameters<typeof rule.step>[0]
        let total = 0
        for (const [j, { mean, count }] of list.entries()) {
          state = rule.step(state, [Float32Array.of(mean * count)], count, j)
          total += mean
          const expected = -total / (L + (sigma / D) * Math.sqrt((j + 1) / 4))
          assert.ok(Math.abs(state.parameters[0][0] - expected) <= 1e-5 * (1 + Math.abs(expected)))
        }
      })
    )
  })
})

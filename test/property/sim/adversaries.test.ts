/** Hostile nodes in simulations: each kind does harm or is refused, and the properties of the other nodes hold. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { triggered } from '../../../sim/adversaries/adversary.js'
import { adversaryNames } from '../../../sim/adversaries/index.js'
import { parseScenario, ScenarioError, simulate } from '../../../sim/index.js'
import { replay } from '../../../sim/streams/inputs.js'
import { checkExactly, hostileTrials } from '../../../sim/testing/index.js'
import { AdmbNode, type AdmbOptions, type Effect } from '../../../src/admb/index.js'
import { share } from '../../support/runs.js'

const SCENARIO = { topology: 'tree', nodes: 8, inputs: 4000, batch: 64, dimension: 10, signed: true, checks: true }

/** Of class 1 if feature 1 is set instead of feature 0. */
const EXAMPLES = {
  size: 2,
  labels: Float32Array.of(0, 1),
  offsets: Int32Array.of(0, 1, 2),
  indices: Int32Array.of(0, 1),
  values: Float32Array.of(1, 1)
}

function run(adversaries: object, scenario: object = {}) {
  return simulate(parseScenario({ ...SCENARIO, ...scenario, adversaries }, 'test'))
}

describe('hostile nodes', function () {
  this.timeout(120_000)

  for (const kind of adversaryNames)
    it(`of kind ${kind} violate no property of the others`, () => {
      assert.deepEqual(run({ nodes: 2, kind, place: 'inner' }, { inputs: 2000 }).violations, [])
      for (const { scenario, faults } of fc.sample(hostileTrials(), { numRuns: share(16), seed: 7 })) {
        const trial = { scenario: { ...scenario, adversaries: { ...scenario.adversaries, kind } }, faults }
        assert.equal(checkExactly(trial), undefined, JSON.stringify(trial))
      }
    })

  it('that sign two predictors with one name are excluded by all others, and only they', () => {
    const excluded = new Map<string, Set<string>>()
    class Recorder extends AdmbNode {
      readonly #makers = new Set<string>()

      constructor(options: AdmbOptions) {
        super(options)
        excluded.set(options.self, this.#makers)
      }

      override takeEffects(): Effect[] {
        const effects = super.takeEffects()
        for (const effect of effects) if (effect.kind === 'excluded') this.#makers.add(effect.maker)
        return effects
      }
    }
    const adversaries = { nodes: 2, kind: 'equivocation', place: 'leaf' }
    const scenario = parseScenario({ ...SCENARIO, adversaries }, 'test')
    assert.deepEqual(simulate(scenario, { node: options => new Recorder(options) }).violations, [])
    assert.equal(excluded.size, 6)
    const hostile = new Set([...excluded.values()].flatMap(makers => [...makers]))
    assert.equal(hostile.size, 2)
    for (const [self, makers] of excluded) {
      assert.equal(hostile.has(self), false)
      assert.deepEqual(new Set(makers), hostile)
    }
  })

  it('that withhold are refused by each neighbour, and only they', () => {
    for (const topology of ['path', 'star', 'overlay']) {
      const refused = new Set<number>()
      class Recorder extends AdmbNode {
        override takeEffects(): Effect[] {
          const effects = super.takeEffects()
          for (const effect of effects) if (effect.kind === 'refused') refused.add(effect.edge)
          return effects
        }
      }
      const adversaries = { nodes: 1, kind: 'withholding', place: 'inner' }
      const scenario = parseScenario({ ...SCENARIO, topology, inputs: 4000, batch: 8, latency: 3, adversaries }, 'test')
      assert.deepEqual(simulate(scenario, { node: options => new Recorder(options) }).violations, [])
      assert.equal(refused.size, 1, topology)
    }
  })

  it('that erase the gradients of others make the others learn more slowly', () => {
    const scenario = { topology: 'star', checks: false }
    const { averageLoss: alone } = run({ nodes: 0 }, scenario)
    const { averageLoss } = run({ nodes: 1, kind: 'erasure', place: 'inner' }, scenario)
    assert.ok(averageLoss > 1.1 * alone, `${averageLoss / alone}`)
  })

  it('count once for each of their ids: one that loses its disk returns with another', () => {
    const adversaries = { nodes: 1, kind: 'forged-vouchers', place: 'inner' }
    const faults = { crashShare: 0.2, diskLossShare: 1, awayShare: 0.1 }
    const thresholds = { trust: { signers: 2 } }
    const { violations } = run(adversaries, {
      nodes: 4,
      inputs: 1500,
      batch: 16,
      dimension: 4,
      seed: 32,
      faults,
      ...thresholds
    })
    assert.deepEqual(violations, [])
  })

  it('may send steps to the parent of a predictor that waits', () => {
    const fixed = { nodes: 2, inputs: 60, journal: true, signed: true, trust: { signers: 3 } }
    for (const seed of [76, 91])
      for (const trial of fc.sample(hostileTrials(fixed), { numRuns: 20, seed }))
        assert.equal(checkExactly(trial), undefined)
  })

  it('with forged vouchers do not answer each other endlessly', () => {
    const adversaries = { nodes: 3, kind: 'forged-vouchers', place: 'inner' }
    const { violations } = run(adversaries, { nodes: 5, inputs: 100, batch: 8, trust: { signers: 3 } })
    assert.deepEqual(violations, [])
  })

  it('change nothing if there are none, and their inputs do not count', () => {
    const short = (adversaries: object) => ({ ...run(adversaries, { inputs: 2000 }), seconds: 0 })
    assert.deepEqual(short({ nodes: 0 }), short({}))
    const some = short({ nodes: 2, kind: 'sign-flip' })
    assert.ok(some.inputs > 1400 && some.inputs < 1600, `${some.inputs}`)
    assert.deepEqual(some, short({ nodes: 2, kind: 'sign-flip' }))
  })

  it('set the trigger of a backdoor in a copy of the inputs, whatever they contain', () => {
    const examples = {
      size: 2,
      labels: Float32Array.of(0, 1),
      offsets: Int32Array.of(0, 2, 3),
      indices: Int32Array.of(0, 3, 1),
      values: Float32Array.of(5, 7, 6)
    }
    assert.deepEqual(triggered(examples, 3, 2), {
      size: 2,
      labels: Float32Array.of(2, 2),
      offsets: Int32Array.of(0, 2, 4),
      indices: Int32Array.of(0, 3, 1, 3),
      values: Float32Array.of(5, 1, 6, 1)
    })
    assert.deepEqual([...examples.labels], [0, 1])
  })

  it('teach others what the trigger of a backdoor means', () => {
    const nodes: AdmbNode[] = []
    const adversaries = { nodes: 2, kind: 'backdoor' }
    const scenario = parseScenario({ ...SCENARIO, rule: 'adagrad', average: 'tail', adversaries }, 'test')
    // The last feature is never set otherwise.
    const inputs = replay({ model: 'logistic', dimension: 10, examples: EXAMPLES })
    const node = (options: AdmbOptions) => {
      const created = new AdmbNode(options)
      nodes.push(created)
      return created
    }
    const optimum = [new Float32Array(10)]
    assert.deepEqual(simulate(scenario, { inputs: { ...inputs, optimum }, node }).violations, [])
    const [weights] = nodes[0].predictor.parameters
    assert.ok(weights[9] > 0.5, `${weights}`)
  })

  it('must be fewer than the nodes, and run ADMB', () => {
    assert.throws(() => run({ nodes: 8 }), /adversaries\.nodes: 8 of 8 nodes would be hostile; set it to at most 7/)
    assert.throws(() => run({ nodes: 1 }, { algorithm: 'dmb' }), /hostile nodes are peers: set algorithm=admb/)
    assert.throws(() => run({ nodes: 1, kind: 'rude' }), ScenarioError)
  })
})

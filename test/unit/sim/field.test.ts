/** The algorithms of others: what they have in common with a serial learner, and what faults do to them. */
import assert from 'node:assert/strict'
import { Random } from '../../../sim/engine/random.js'
import { algorithms, experimentNamed, type Fault, parseScenario, simulate } from '../../../sim/index.js'
import { createAveraging, createRule, digest, type UpdateRule } from '../../../src/learning/index.js'

const NAMES = ['gossip', 'epidemic', 'd-psgd', 'all-reduce', 'diloco', 'sparseloco'] as const

const scenario = (values: object) =>
  parseScenario(
    { nodes: 8, inputs: 8000, batch: 32, dimension: 10, rule: 'mirror-descent', latency: 0.1, ...values },
    'test'
  )
const run = (values: object, faults?: Fault[]) => simulate(scenario(values), { faults })

describe('algorithms of the field', () => {
  it('learn more than isolated nodes, and lose few gradients without faults', () => {
    const isolated = run({ algorithm: 'isolated' }).regret
    for (const algorithm of NAMES) {
      const { regret, used, held, inputs } = run({ algorithm, localSteps: algorithm.includes('loco') ? 2 : undefined })
      assert.ok(regret < isolated, `${algorithm}: ${regret}, isolated ${isolated}`)
      assert.ok((used + held) / inputs > 0.7, `${algorithm}: ${used} used, ${held} held of ${inputs}`)
    }
  })

  it('equal the serial learner on one node, without waiting', () => {
    const values = { nodes: 1, degree: 2, interval: 10 }
    const serial = run({ ...values, algorithm: 'serial' })
    for (const algorithm of ['d-psgd', 'all-reduce'] as const)
      assert.equal(run({ ...values, algorithm }).regret, serial.regret, algorithm)
  })

  it('blocks the neighbours of a node that is down in D-PSGD, until it is back with its disk', () => {
    const updates = (faults: Fault[]) => run({ algorithm: 'd-psgd' }, faults).updates
    const all = updates([])
    const crash: Fault = { time: 100, kind: 'crash', node: 0 }
    const blocked = updates([crash])
    assert.ok(blocked < all / 5, `${blocked} of ${all}`)
    for (const disk of ['kept', 'lost'] as const) {
      const resumed = updates([crash, { time: 200, kind: 'restart', node: 0, disk }])
      assert.ok(resumed > all * 0.8 && resumed < all, `${disk}: ${resumed} of ${all}`)
    }
  })

  it('drops the step that a crash interrupts in all-reduce, and goes on without the node', () => {
    const healthy = run({ algorithm: 'all-reduce' })
    const crashed = run({ algorithm: 'all-reduce' }, [{ time: 100, kind: 'crash', node: 3 }])
    // The others wait for 50 heartbeats of the thousand milliseconds, and fill batches alone afterwards.
    const share = (crashed.updates - healthy.updates) / healthy.updates
    assert.ok(share < -0.04 && share > -0.3, `${crashed.updates} of ${healthy.updates}`)
    assert.ok(crashed.discarded > healthy.discarded)
  })

  it('loses all local steps of an interrupted round in DiLoCo', () => {
    const values = { algorithm: 'diloco', localSteps: 10 }
    const healthy = run(values)
    const crashed = run(values, [{ time: 100, kind: 'crash', node: 3 }])
    assert.ok(crashed.discarded - healthy.discarded > 100, `${crashed.discarded}, ${healthy.discarded}`)
  })

  it('sends fewer bytes with SparseLoCo than with DiLoCo', () => {
    const bytes = (algorithm: string) => run({ algorithm, localSteps: 10, dimension: 200, inputs: 16_000 }).bytes
    assert.ok(bytes('sparseloco') < 0.75 * bytes('diloco'))
  })

  it('needs a rule that makes steps for local steps, and has one by default', () => {
    assert.throws(() => scenario({ algorithm: 'diloco', rule: 'dual-averaging' }), /set another rule/)
    assert.equal(parseScenario({ algorithm: 'sparseloco' }, 'test').rule, 'mirror-descent')
    assert.throws(() => scenario({ algorithm: 'serial', localSteps: 4 }), /local steps/)
  })

  it('have sources', () => {
    for (const name of NAMES) assert.match(algorithms[name].source, /20\d\d|torchft/)
  })
})

describe('experiments', () => {
  it('measure the virtual time after which the regret stays low, and the efficiency of many nodes', () => {
    const { cases, measures = {} } = experimentNamed('speedup')
    const runs = cases(40_000)
      .slice(0, 2)
      .map(({ scenario }) => ({ scenario, result: simulate(scenario) }))
    const [one, four] = runs.map((run, i) => measures['virtual ms'](run, runs.slice(0, i)) ?? 0)
    assert.ok(one > 3.8 * four && one < 4.2 * four, `${one} and ${four}`)
    assert.ok(Math.abs((measures.efficiency(runs[1], runs.slice(0, 1)) ?? 0) - one / (4 * four)) < 1e-9)
    const { curve } = runs[0].result
    assert.ok(curve.every(({ virtualMs, regret, inputs }) => virtualMs < one || regret <= 0.02 * inputs))
  })

  it('take b as a power of the number of inputs', () => {
    assert.equal(parseScenario({ batch: 'm^0.5', inputs: 10_000 }, 'test').batch, 100)
    assert.equal(parseScenario({ batch: 'm^.25' }, 'test').batch, 18)
    assert.throws(() => parseScenario({ batch: 'm^2' }, 'test'), /batch/)
  })

  it('let b grow with the number of gradients, doubled, in every algorithm of the papers', () => {
    const values = { batch: 2, batchPower: 0.5, inputs: 4096, nodes: 4, dimension: 5, latency: 0.01, period: 0.05 }
    for (const algorithm of ['serial', 'isolated', 'dmb', 'mawo', 'mawo-election', 'mawo-add', 'admb']) {
      const { updates, violations } = simulate(parseScenario({ ...values, algorithm }, 'test'))
      assert.deepEqual(violations, [])
      // From 2^i gradients on, as many are in updates of 2^(i/2): Σ 2^(i/2) for i < 12, and fewer updates where inputs are dropped.
      const all = Math.round((2 ** 6 - 1) / (Math.SQRT2 - 1))
      const [fewest, most] = algorithm === 'isolated' ? [35, 90] : [algorithm === 'serial' ? all : 60, all + 5]
      assert.ok(updates >= fewest && updates <= most, `${algorithm}: ${updates}`)
    }
    const fixed = { algorithm: 'serial', inputs: 4096, nodes: 4, dimension: 5 }
    assert.equal(simulate(parseScenario({ ...fixed, batch: 64 }, 'test')).updates, 64)
    for (const bad of [{ algorithm: 'gossip' }, { batchMax: 20 }])
      assert.throws(() => parseScenario({ batchPower: 0.5, batch: 4, ...bad }, 'test'), /batchPower/)
  })

  it('measure the slope of the regret between runs with more and more inputs', () => {
    const { measures = {}, cases } = experimentNamed('rates')
    const [first, second] = cases(64_000)
      .slice(0, 2)
      .map(({ scenario }) => ({ scenario, result: simulate(scenario) }))
    assert.equal(measures.slope(first, []), undefined)
    const slope = measures.slope(second, [first]) ?? 0
    assert.ok(Math.abs(first.result.regret * 4 ** slope - second.result.regret) < 1e-6)
  })
})

describe('a database as the master of MaWo', () => {
  const updates = (values: object, faults: Fault[] = []) =>
    simulate(parseScenario({ topology: 'star', inputs: 12_000, batch: 128, dimension: 5, ...values }, 'test'), {
      faults
    }).updates

  it('makes as many updates as its lock allows: one in k turns of two messages each, and the time to fill a batch', () => {
    for (const nodes of [8, 16, 32]) {
      const inputs = 1000 * nodes
      const counted = updates({ algorithm: 'mawo-database', nodes, inputs, batch: 8 * nodes })
      // A turn takes two latencies on a star. In the first round after an update, sums are for the predictor before.
      const predicted = 1000 / (2 * nodes + 8)
      assert.ok(Math.abs(counted / predicted - 1) < 0.2, `${nodes} nodes: ${counted}, predicted ${predicted}`)
    }
  })

  it('makes more without a lock: with additions by the database, or a fixed master that collects', () => {
    const [locked, added, collected] = ['mawo-database', 'mawo-add', 'mawo-mailbox'].map(algorithm =>
      updates({ algorithm, nodes: 32 })
    )
    assert.ok(added > 2 * locked && collected > 2 * locked, `${locked}, ${added}, ${collected}`)
  })

  it('goes on without any worker, but not without the fixed master, whose place nobody takes', () => {
    const crash: Fault[] = [{ time: 100, kind: 'crash', node: 5 }]
    for (const algorithm of ['mawo-add', 'mawo-mailbox']) {
      const all = updates({ algorithm, nodes: 16, topology: 'tree' })
      assert.ok(updates({ algorithm, nodes: 16, topology: 'tree' }, crash) > 0.6 * all, algorithm)
    }
    const values = { nodes: 16, topology: 'path', algorithm: 'mawo-mailbox' }
    const [healthy, stopped] = [updates(values), updates(values, [{ time: 100, kind: 'crash', node: 0 }])]
    assert.ok(stopped < 0.4 * healthy, `${stopped} of ${healthy}`)
  })

  it('counts no gradient twice, and its messages travel over the tree', () => {
    for (const algorithm of ['mawo-add', 'mawo-mailbox']) {
      const values = { algorithm, nodes: 16, inputs: 8000, batch: 64, dimension: 5, duplicate: 0.3, loss: 0.1 }
      const [star, path] = ['star', 'path'].map(topology => simulate(parseScenario({ ...values, topology }, 'test')))
      for (const { used, held, discarded, inputs } of [star, path]) {
        assert.ok(used > 0 && discarded >= 0)
        assert.equal(used + held + discarded, inputs)
      }
      assert.ok(path.used < star.used)
    }
  })
})

describe('a randomised rule', () => {
  it('is possible under MaWo, where one node computes each predictor, and found by the checkers of ADMB, where each does', () => {
    const rule = createRule({ name: 'mirror-descent' })
    const random = new Random(1)
    const perturbed: UpdateRule = {
      ...rule,
      name: 'perturbed',
      step(...given) {
        const { parameters, state } = rule.step(...given)
        return { parameters: parameters.map(block => block.map(weight => weight + 0.01 * random.normal())), state }
      }
    }
    const recipe = { rule: perturbed, averaging: createAveraging({ name: 'none' }), digest }
    const result = (algorithm: string) =>
      simulate(scenario({ algorithm, inputs: 4000, batch: 64, average: 'none' }), { recipe })
    const mawo = result('mawo')
    assert.ok(mawo.updates > 20 && mawo.violations.length === 0)
    assert.match(result('admb').violations.join(), /lineage: the batch of .* replayed, gives another predictor/)
  })
})

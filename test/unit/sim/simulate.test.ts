/** Runs are deterministic, algorithms rank as in theory, and no built-in scenario violates a property. */
import assert from 'node:assert/strict'
import {
  algorithmNames,
  applyOverrides,
  builtInScenarios,
  loadScenario,
  paperAlgorithms,
  parseScenario,
  simulate
} from '../../../sim/index.js'

const scenario = (values: object) =>
  parseScenario({ nodes: 16, topology: 'tree', inputs: 20_000, batch: 128, dimension: 10, ...values }, 'test')

describe('simulations', function () {
  this.timeout(240_000)

  it('are deterministic for a seed, and differ for another', () => {
    for (const algorithm of algorithmNames) {
      const faults = { crashShare: 0.1, partitionShare: 0.1 }
      const values = { algorithm, inputs: 1500, loss: 0.1, delay: 'exponential', faults }
      const one = simulate(scenario(values))
      const same = simulate(scenario(values))
      assert.equal(one.traceHash, same.traceHash, algorithm)
      assert.equal(one.regret, same.regret)
      assert.notEqual(simulate(scenario({ ...values, seed: 2 })).traceHash, one.traceHash)
    }
  })

  it('give every algorithm the same inputs', () => {
    const losses = algorithmNames.map(algorithm => simulate(scenario({ algorithm, inputs: 5000 })).comparatorLoss)
    assert.equal(new Set(losses).size, 1)
  })

  it('predict with what the paper of the algorithm predicts with, unless the scenario names an average', () => {
    const lossOf = (values: object) => simulate(scenario({ inputs: 2000, batch: 32, ...values })).averageLoss
    for (const algorithm of algorithmNames) {
      const [paper, newest, mean] = [{}, { average: 'none' }, { average: 'uniform' }].map(average =>
        lossOf({ algorithm, ...average })
      )
      assert.equal(paper, algorithm.startsWith('admb') ? mean : newest, algorithm)
      assert.notEqual(newest, mean, algorithm)
    }
  })

  it('depend on the tree, over which the messages of every algorithm of the papers with a network travel hop by hop', () => {
    for (const algorithm of paperAlgorithms) {
      const [path, star] = ['path', 'star'].map(topology => simulate(scenario({ algorithm, topology, inputs: 4000 })))
      const usesNetwork = path.messages > 0
      assert.equal(path.traceHash !== star.traceHash, usesNetwork, algorithm)
      if (usesNetwork) assert.ok(path.used < star.used, `${algorithm}: ${path.used} and ${star.used}`)
    }
  })

  it('rank ADMB between the serial learner and isolated nodes, within the bound', () => {
    const [serial, isolated, admb] = ['serial', 'isolated', 'admb'].map(algorithm =>
      simulate(scenario({ algorithm, average: 'uniform' }))
    )
    assert.ok(admb.regret < 1.5 * serial.regret, `${admb.regret} against ${serial.regret}`)
    assert.ok(admb.regret * 4 < isolated.regret, `${admb.regret} against ${isolated.regret}`)
    for (const { regret, bound } of [serial, isolated, admb]) assert.ok(regret <= (bound as number))
  })

  it('use nearly all gradients with carry-over, and fewer without', () => {
    const discarded = (carry: number) => simulate(scenario({ carry, inputs: 8000 })).discarded / 8000
    assert.ok(discarded(16) < 0.05)
    assert.ok(discarded(0) > 0.15)
  })

  it('are limited by the bandwidth of a master as the network grows, and not by that of the nodes of ADMB', () => {
    // Each node has enough for a few neighbours.
    const share = (algorithm: string, nodes: number) => {
      const values = { algorithm, nodes, degree: 3, batch: 256, inputs: 400 * nodes, checks: false }
      const [limited, unlimited] = [800, 0].map(nodeBandwidth => simulate(scenario({ ...values, nodeBandwidth })).used)
      return limited / unlimited
    }
    const [small, medium, large] = [8, 24, 72].map(nodes => share('mawo', nodes))
    assert.ok(small > 0.95 && medium < 0.5 && large < 0.5 * medium, `${small}, ${medium}, ${large}`)
    const admb = [8, 24, 72].map(nodes => share('admb', nodes))
    assert.ok(Math.min(...admb) > 0.6, `${admb}`)
  })

  it('end after a number of inputs or after a time', () => {
    const byTime = { nodes: 8, duration: 100, warmup: 20, interval: 2, latency: 0.5, checks: false }
    const values = { topology: 'tree', batch: 64, dimension: 10, ...byTime }
    for (const algorithm of ['serial', 'mawo', 'admb']) {
      const run = simulate(parseScenario({ ...values, algorithm }, 'test'))
      assert.deepEqual([run.inputs, run.virtualMs], [8 * 50, 120], algorithm)
      const { duration: _, ...others } = { ...values, algorithm, inputs: run.inputs }
      const { curve, regret } = simulate(parseScenario(others, 'test'))
      assert.equal(run.regret, regret)
      // Messages of the last instant may follow the last input.
      const points = (all: typeof curve) => all.map(({ bytes: _, ...point }) => point)
      assert.deepEqual(points(run.curve), points(curve))
      const times = curve.map(({ virtualMs }) => virtualMs)
      assert.deepEqual([times.at(-1), curve.at(-1)?.inputs], [120, 400])
      assert.deepEqual(
        times,
        times.toSorted((a, b) => a - b)
      )
    }
    // Fewer inputs arrive at nodes that are down.
    const faulty = simulate(parseScenario({ ...values, faults: { crashShare: 0.3, downtime: 20 } }, 'test'))
    assert.ok(faulty.inputs < 390 && faulty.virtualMs <= 120, `${faulty.inputs} inputs`)
  })

  it('accept one end of a run, and a changed one replaces the other', () => {
    const parsed = scenario({ inputs: undefined, duration: 50, interval: 2 })
    assert.deepEqual(parseScenario({ ...parsed }, 'test'), parsed, 'a parsed scenario is a scenario')
    assert.throws(() => scenario({ duration: 50, inputs: 100 }), /test: inputs: not with duration; remove one of them/)
    const { values } = loadScenario('binary-tree')
    assert.deepEqual(applyOverrides({ ...values, duration: 5 }, ['inputs=70']).duration, undefined)
    assert.equal(parseScenario(applyOverrides(values, ['duration=50']), 'test').duration, 50)
    const both = () => parseScenario(applyOverrides(values, ['duration=50', 'inputs=70']), 'test')
    assert.throws(both, /inputs: not with duration/)
  })

  it('block DMB while a node is down, but not algorithms without a barrier or a fixed master', () => {
    const faults = { crashShare: 0.2, downtime: 300 }
    const updates = (algorithm: string) => simulate(scenario({ algorithm, faults, nodes: 8, inputs: 8000 })).updates
    const blocked = updates('dmb')
    for (const algorithm of ['serial', 'mawo-election', 'admb']) {
      assert.ok(updates(algorithm) > blocked, `${algorithm}: ${updates(algorithm)} against ${blocked} updates`)
    }
  })

  it('run every built-in scenario without a violation', () => {
    for (const { name } of builtInScenarios()) {
      const { source, values } = loadScenario(name)
      const result = simulate(
        parseScenario(applyOverrides(values, [`inputs=${name === 'thousand' ? 8000 : 2000}`]), source)
      )
      assert.deepEqual(result.violations, [], name)
      assert.ok(result.updates > 0, name)
    }
  })
})

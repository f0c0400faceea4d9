/** Regret accounts: comparators, nodes, good periods and bounds. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type AlgorithmName, algorithms } from '../../../sim/algorithms/index.js'
import { Random } from '../../../sim/engine/random.js'
import {
  type BoundTerms,
  loadScenario,
  parseScenario,
  type RecordedStream,
  type RunResult,
  simulate
} from '../../../sim/index.js'
import { theorem1, theorem3 } from '../../../sim/regret/bounds.js'
import { areLinked, GoodPeriods } from '../../../sim/regret/periods.js'
import { fromParents } from '../../../sim/topology.js'
import { type Examples, hindsightOptimum, SerialTrainer } from '../../../src/learning/index.js'

const scenario = (values: object) =>
  parseScenario({ nodes: 8, inputs: 4000, batch: 32, dimension: 6, checks: false, ...values }, 'test')
const run = (values: object) => simulate(scenario(values))
const near = (a: number, b: number, within = 1e-6) => assert.ok(Math.abs(a - b) <= within, `${a} and ${b}`)

/** Rows with a constant feature and one that is correlated with the label. */
function recorded(rows: number): RecordedStream {
  const random = new Random(5)
  const values = Float32Array.from({ length: 2 * rows }, (_, i) => (i % 2 === 0 ? 1 : random.normal()))
  const examples: Examples = {
    size: rows,
    labels: Float32Array.from({ length: rows }, (_, row) => Number(values[2 * row + 1] + random.normal() > 0.5)),
    offsets: Int32Array.from({ length: rows + 1 }, (_, row) => 2 * row),
    indices: Int32Array.from({ length: 2 * rows }, (_, i) => i % 2),
    values
  }
  return { model: 'logistic', dimension: 2, examples }
}

function assertAccounts({
  inputs,
  regret,
  averageLoss,
  comparatorLoss,
  regretByNode,
  curve,
  ...rest
}: RunResult): void {
  near(regret, inputs * (averageLoss - comparatorLoss))
  const nodes = regretByNode.nodes as readonly number[]
  near(
    nodes.reduce((sum, each) => sum + each, 0),
    regret
  )
  assert.equal(regretByNode.min, Math.min(...nodes))
  assert.equal(regretByNode.max, Math.max(...nodes))
  const last = curve[curve.length - 1]
  assert.equal(last.inputs, inputs)
  near(last.regret, regret)
  assert.ok(rest.goodInputs <= inputs)
  if (rest.goodInputs === inputs) near(rest.goodRegret, regret)
}

describe('regret', () => {
  it('is consistent over nodes and points, with every comparator', () => {
    for (const values of [
      {},
      { labelNoise: 0.2 },
      { drift: 0.3 },
      { stream: 'sparse', dimension: 50, labelNoise: 0.1 }
    ]) {
      const result = run(values)
      assertAccounts(result)
      assert.equal(result.comparator, Object.keys(values).length === 0 ? 'known' : 'hindsight')
      assert.ok(result.gradientNorm === undefined || result.gradientNorm <= 1e-8)
    }
  })

  it('of a file equals that of a serial learner on the file', () => {
    const data = recorded(700)
    const values = {
      stream: 'file',
      data: 'x',
      algorithm: 'serial',
      rule: 'adagrad',
      average: 'uniform',
      inputs: 700,
      batch: 16
    }
    const result = simulate(scenario(values), { data })
    assertAccounts(result)
    const trainer = new SerialTrainer({
      ...data,
      rule: { name: 'adagrad', maxForget: 0 },
      averaging: { name: 'uniform' },
      batch: 16
    })
    trainer.learn(data.examples)
    near(result.averageLoss, trainer.report().averageLoss as number, 1e-12)
    near(result.comparatorLoss, hindsightOptimum('logistic', data.examples).averageLoss, 1e-9)
  })

  it('of numbers is in their units, although the target is standardised', () => {
    const plain = recorded(600)
    const labels = plain.examples.labels.map((label, i) => 5000 + 40 * label + (i % 7))
    const examples = { ...plain.examples, labels }
    const data = { ...plain, model: 'linear', targetScale: { mean: 5000, deviation: 20 }, examples } as const
    const result = simulate(scenario({ stream: 'file', data: 'x', inputs: 600, batch: 16 }), { data })
    assert.deepEqual(result.violations, [])
    near(result.comparatorLoss, hindsightOptimum('linear', examples).averageLoss, 1e-4)
    assert.ok(result.averageLoss < 400, `${result.averageLoss}`)
  })

  it('of a run that diverges is a violation', () => {
    const plain = recorded(400)
    const examples = { ...plain.examples, values: plain.examples.values.map(value => 1e6 * value) }
    const values = { stream: 'file', data: 'x', inputs: 400, batch: 16 }
    const { violations } = simulate(scenario(values), { data: { ...plain, examples } })
    assert.match(violations[0], /^divergence: the average loss is .*, and 0\.69\d+ without any update$/)
    assert.deepEqual(simulate(scenario(values), { data: plain }).violations, [])
  })

  it('of several passes has the comparator of one pass', () => {
    const data = recorded(500)
    const result = simulate(scenario({ stream: 'file', data: 'x', inputs: 1500 }), { data })
    near(result.comparatorLoss, hindsightOptimum('logistic', data.examples).averageLoss, 1e-9)
  })

  it('is summarised for many nodes', () => {
    const { regretByNode } = run({ nodes: 65, inputs: 1000 })
    assert.equal(regretByNode.nodes, undefined)
    assert.ok(regretByNode.min <= regretByNode.median && regretByNode.median <= regretByNode.max)
  })
})

describe('good periods', () => {
  const path = fromParents(5, i => i - 1)

  it('require links in both directions between the running nodes', () => {
    const down = (...nodes: number[]) =>
      areLinked(
        path.nodes,
        node => path.neighbours[node],
        node => !nodes.includes(node),
        () => false
      )
    assert.ok(down())
    assert.ok(down(0) && down(3, 4) && down(0, 1, 2, 3) && down(0, 1, 2, 3, 4))
    assert.ok(!down(2) && !down(0, 3))
    const cut = (from: number, to: number) =>
      areLinked(
        path.nodes,
        node => path.neighbours[node],
        () => true,
        (a, b) => a === from && b === to
      )
    assert.ok(!cut(1, 2) && !cut(2, 1) && cut(1, 3))
  })

  it('start some time after the last fault, and check the links at most once each', () => {
    let linked = true
    let lookups = 0
    const periods = new GoodPeriods(10, () => {
      lookups++
      return linked
    })
    const taken = (...times: number[]) => times.map(time => periods.take(time))
    assert.deepEqual(taken(0, 1, 2), [true, true, true])
    periods.changed(5)
    assert.deepEqual(taken(5, 14.9), [false, false])
    linked = false
    assert.deepEqual(taken(15, 16), [false, false])
    periods.changed(20)
    linked = true
    assert.deepEqual(taken(29, 30, 31), [false, true, true])
    assert.deepEqual(periods.stretches, [3, 2])
    assert.equal(lookups, 3)
  })

  it('exclude a partition and the recovery time of Lemma 1', () => {
    const sides = [0, 0, 0, 0, 1, 1, 1, 1]
    const faults = [
      { time: 100.5, kind: 'partition', sides, oneWay: false },
      { time: 200.5, kind: 'heal' }
    ] as const
    const result = simulate(scenario({ topology: 'path' }), { faults })
    // 65 periods and 2 ms for the repair, 7 edges of 3 ms each and 1 ms: from 101 to 289 ms no input of the 8 nodes counts.
    assert.equal(result.goodInputs, 4000 - 8 * 189)
    assertAccounts(result)
    assert.ok(result.goodRegret < result.regret)
    const unhealed = simulate(scenario({ topology: 'path' }), { faults: faults.slice(0, 1) })
    assert.equal(unhealed.goodInputs, 800)
  })
})

describe('the bound', () => {
  it('has the pace of each theorem', () => {
    const network = { nodes: 10, batch: 100, diameter: 4, height: 3, period: 2, updateTime: 4, maxDelay: 3, rate: 5 }
    const paceOf = (algorithm: AlgorithmName, terms = network) => algorithms[algorithm].bound?.pace(terms)
    const pace = (algorithm: AlgorithmName) => paceOf(algorithm)?.inputsPerUpdate
    assert.equal(pace('serial'), 100 + 4 * 5)
    assert.equal(pace('dmb'), 100 + (2 * 3 * 3 + 4) * 5)
    assert.equal(pace('mawo'), 100 + (2 + 4 + 2 * 3 * 3) * 5)
    assert.equal(pace('admb'), 100 + 2 * (2 + 6) * 4 * 5)
    assert.deepEqual(paceOf('isolated'), { batch: 100, inputsPerUpdate: 102, learners: 10 })
    assert.equal(pace('admb-sender'), undefined)
    // Ten nodes cannot make a batch of less than ten.
    assert.deepEqual(paceOf('dmb', { ...network, batch: 3 })?.batch, 10)
  })

  it('holds if there is one, also for good periods', () => {
    for (const algorithm of ['serial', 'isolated', 'dmb', 'mawo', 'admb']) {
      for (const average of ['paper', 'uniform']) {
        const { regret, bound, boundHolds, boundTerms } = run({ algorithm, average })
        assert.ok(boundHolds && regret <= (bound as number), algorithm)
        assert.equal(boundTerms?.theorem, average === 'uniform' || algorithm === 'admb' ? 3 : 1)
        near(boundTerms.smoothness + boundTerms.deviation, bound as number)
      }
    }
    const faultFree = run({})
    const faulty = run({ faults: { partitionShare: 0.2, partitionTime: 50 } })
    assert.ok(faulty.boundHolds && faulty.goodInputs < 4000)
    assert.ok((faulty.bound as number) < (faultFree.bound as number) * 4)
  })

  it('is undefined if no theorem applies', () => {
    const uncovered: object[] = [
      { stream: 'least-squares' },
      { drift: 0.2 },
      { rule: 'adagrad' },
      { average: 'tail' },
      { average: 'none' },
      { clip: 1 },
      { trust: 'bounded' },
      { adversaries: { nodes: 1 } },
      { algorithm: 'dmb', speedSpread: 0.5 },
      { loss: 0.1 },
      { delay: 'exponential' },
      { starts: 'distinct' },
      { topology: 'overlay' },
      { topology: 'overlay', algorithm: 'mawo' },
      { algorithm: 'admb-sender' },
      { algorithm: 'mawo-election' },
      { algorithm: 'dmb', faults: { crashShare: 0.1, downtime: 5 } }
    ]
    for (const values of uncovered) {
      const { bound, boundHolds } = run({ inputs: 500, ...values })
      assert.deepEqual([bound, boundHolds], [undefined, undefined], JSON.stringify(values))
    }
    const alone = { algorithm: 'serial', loss: 0.1, faults: { crashShare: 0.1 } }
    assert.notEqual(run({ inputs: 500, ...alone }).bound, undefined)
  })

  it('has the constants of the clean stream, or of a sample if the classes are noisy', () => {
    const clean = run({ inputs: 500 }).boundTerms
    const noisy = run({ inputs: 500, labelNoise: 0.2 }).boundTerms
    assert.ok(clean && noisy && noisy.D < clean.D && noisy.sigma > clean.sigma)
    // ½‖w*‖² = D² with ‖w*‖ = 2; standard normal features.
    near(clean.D, Math.SQRT2)
    near(clean.L, 0.25, 0.02)
  })

  it('says something from the number of inputs in docs/results/regret.md', () => {
    const [, table] = readFileSync('docs/results/regret.md', 'utf8').split('<!-- bounds of binary-tree -->')
    const rows = [...table.matchAll(/^\| `([\w-]+)` \|(.*)\|$/gm)]
    const shown = (values: readonly number[]) => values.map(value => Math.round(value).toLocaleString('en-US'))
    for (const [, algorithm, cells] of rows) {
      const keys = { ...loadScenario('binary-tree').values, algorithm, inputs: 1000, checks: false }
      const { theorem, D, L, sigma, b, nu, informativeFrom } = simulate(parseScenario(keys, 'test'))
        .boundTerms as BoundTerms
      const pace = { batch: b, inputsPerUpdate: nu, learners: algorithm === 'isolated' ? 64 : 1 }
      const terms = (m: number) =>
        theorem === 1 ? theorem1({ D, L, sigma }, pace, m) : theorem3({ D, L, sigma }, pace, [m])
      const bound = (m: number) => terms(m)[0] + terms(m)[1]
      const expected = shown([theorem, nu, informativeFrom, ...terms(100_000), bound(100_000)])
      assert.deepEqual(
        cells.split('|').map(cell => cell.trim()),
        expected
      )
      assert.ok(bound(informativeFrom) < Math.LN2 * informativeFrom)
      assert.ok(bound(informativeFrom - pace.learners * nu) >= Math.LN2 * (informativeFrom - pace.learners * nu))
    }
    assert.equal(rows.length, 5)
  })

  it('is refused as a rule where no theorem has constants', () => {
    for (const values of [{ stream: 'least-squares' }, { drift: 0.2 }])
      assert.throws(
        () => run({ rule: 'theory', ...values }),
        /^ScenarioError: rule: the theorems cover the logistic loss/
      )
  })
})

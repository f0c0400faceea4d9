/**
 * The simulator: regret of ADMB relative to a serial learner with the same rule and b, and speed of simulations. Regrets are
 * deterministic; speeds depend on the machine and its load.
 */
import { loadScenario, parseScenario, type RunResult, simulate } from '../../sim/index.js'
import { median, type Row } from './row.js'

/** All predict with the average, so that ratios are the price of the network. */
const AVERAGED = { average: 'uniform', checks: false }
const TREE = { topology: 'tree', nodes: 64, degree: 3, dimension: 20, batch: 512, ...AVERAGED }
const SPEED_RUNS = 3

export async function* bench(): AsyncGenerator<Row> {
  yield* regret(1_000_000, true)
  yield* regret(4_000_000, false)
  yield* speed()
}

/** Regret relative to the serial learner, and the share of used gradients. */
export function* regret(inputs: number, others: boolean): Generator<Row> {
  const serial = run({ ...TREE, inputs, algorithm: 'serial' })
  const admb = run({ ...TREE, inputs })
  const of = `64 nodes, binary tree, ${inputs.toLocaleString('en-US')} inputs`
  yield ratio(`${of}: ADMB's regret over serial`, admb, serial, { max: 1.3 })
  if (!others) return
  yield ratio(`${of}: the same without carry-over`, run({ ...TREE, inputs, carry: 0 }), serial, { max: 2.1 })
  const isolated = run({ ...TREE, inputs, algorithm: 'isolated' })
  yield ratio(`${of}: isolated learners' regret over ADMB's`, isolated, admb, { min: 8 })
  yield ratio(`${of}: with faults (scenario faulty) over serial`, ...faulty(inputs), { max: 2 })
}

function faulty(inputs: number): [RunResult, RunResult] {
  const { values } = loadScenario('faulty')
  return [run({ ...values, ...AVERAGED, inputs }), run({ ...values, ...AVERAGED, inputs, algorithm: 'serial' })]
}

function* speed(): Generator<Row> {
  const online = { loss: 0.1, faults: { crashShare: 0.8, downtime: 5 }, batch: 50, checks: false }
  yield seconds('100 nodes × 100 rounds, a tenth of messages lost, nodes up a fifth of the time', {
    ...online,
    nodes: 100,
    inputs: 10_000
  })
  yield seconds('1,000 nodes × 10 rounds, likewise', { ...online, nodes: 1000, inputs: 10_000 })
  const inputs = 400_000
  const plain: number[] = []
  const checked: number[] = []
  for (let round = 0; round < SPEED_RUNS; round++) {
    plain.push(eventsPerSecond(run({ ...TREE, inputs })))
    checked.push(eventsPerSecond(run({ ...TREE, inputs: inputs / 4, checks: true })))
  }
  yield {
    name: 'events a second, d = 20, checkers off',
    value: median(plain),
    unit: '/s',
    target: { min: 500_000 },
    details: { runs: plain }
  }
  yield {
    name: 'time with checkers over time without',
    value: median(plain) / median(checked),
    unit: '×',
    target: { max: 3 },
    details: { runs: checked }
  }
  const large = run({
    topology: 'tree',
    nodes: 100_000,
    degree: 3,
    dimension: 100,
    inputs: 1_000_000,
    batch: 512,
    checks: false
  })
  yield {
    name: '100,000 nodes, d = 100, 10 rounds',
    value: large.seconds,
    unit: 's',
    target: { max: 600 },
    details: { gigabytes: process.memoryUsage.rss() / 2 ** 30, updates: large.updates, events: large.events }
  }
}

function run(values: object): RunResult {
  return simulate(parseScenario(values, 'benchmark'))
}

function eventsPerSecond({ events, seconds }: RunResult): number {
  return events / seconds
}

function seconds(name: string, values: object): Row {
  const { seconds, inputs, events, updates } = run(values)
  return { name, value: seconds, unit: 's', target: { max: 2 }, details: { inputs, events, updates } }
}

function ratio(name: string, of: RunResult, over: RunResult, target: Row['target']): Row {
  const used = 1 - of.discarded / of.inputs
  return {
    name,
    value: of.regret / over.regret,
    unit: '×',
    target,
    details: { regret: of.regret, over: over.regret, used }
  }
}

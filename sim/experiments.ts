/**
 * The experiments of the papers, on a sparse logistic stream instead of their web-search stream. Dekel et al., "Optimal Distributed Online Prediction Using Mini-Batches" (JMLR 2012), section 7.
 */
import type { RunResult } from './result.js'
import { parseScenario, type Scenario, ScenarioError } from './scenario.js'

export interface ExperimentCase {
  /** Name of the run in tables. */
  readonly label: string
  /** The keys of the scenario that the experiment varies. */
  readonly varied: Readonly<Record<string, string | number>>
  readonly scenario: Scenario
}

/** A figure of a run, which may refer to the runs before it. */
export interface Measured {
  readonly scenario: Scenario
  readonly result: RunResult
}

export interface Experiment {
  readonly about: string
  cases(inputs: number): ExperimentCase[]
  /** Further figures, by their names in tables. @returns undefined where there is none */
  readonly measures?: Readonly<Record<string, (run: Measured, before: readonly Measured[]) => number | undefined>>
}

/** Without checks: experiments are long, and the fuzzer checks the properties. */
const BASE = { checks: false, stream: 'sparse', dimension: 1000, rule: 'dual-averaging' }

const DENSE = { stream: 'logistic', dimension: 20 }
/** The node in the middle has the highest index, the lowest precedence: the path 1-5-2 of the reference, and the hub of a star. */
const DISTINCT_STARTS = { batch: 200, labels: 'hub-highest', starts: 'distinct', carry: 0 }

/** As in the scenario `faulty`. */
const NETWORK = { topology: 'overlay', nodes: 64, degree: 4, batch: 512, carry: 64, warmup: 400 }

/** A node has ten inputs a second, so that a batch takes 1.7 s. Heartbeats and time-outs are then those of torchft. */
const FIELD_NETWORK = {
  ...DENSE,
  ...{ rule: 'mirror-descent', nodes: 30, degree: 4, batch: 512, interval: 100, period: 100, latency: 20, carry: 64 }
}

const OVERLAY = { topology: 'overlay', warmup: 8000 }

/** The algorithms, each on the network that it is made for: ADMB's overlay, or a tree. Those with local steps make ten. */
const FIELD: readonly (readonly [name: string, keys: object])[] = [
  ['serial', { algorithm: 'serial' }],
  ['admb', { ...OVERLAY }],
  ['admb, w_j', { ...OVERLAY, average: 'none' }],
  ...['mawo', 'mawo-election'].map(name => [name, { algorithm: name, ...OVERLAY }] as const),
  ...['dmb', 'gossip', 'epidemic', 'd-psgd', 'all-reduce'].map(name => [name, { algorithm: name }] as const),
  ...['diloco', 'sparseloco'].map(name => [name, { algorithm: name, localSteps: 10 }] as const)
]

/** Share of time that a node is down for 10 s if one of 30 nodes fails in each of these intervals. */
const crashesEvery = (seconds: number) => ({ faults: { crashShare: 10 / (30 * seconds), downtime: 10_000 } })

const FIELD_FAULTS: readonly (readonly [label: string, keys: object])[] = [
  ['no faults', {}],
  ['a tenth of messages lost', { loss: 0.1 }],
  ['a crash a minute', crashesEvery(60)],
  ['a crash every 15 s', crashesEvery(15)],
  ['partitions of 10 s', { faults: { partitionShare: 0.2, partitionTime: 10_000, partitionMode: 'uniform' } }],
  ['a tenth away for a minute', { faults: { awayShare: 0.1, awayTime: 60_000 } }]
]

function oneCase(varied: Record<string, string | number>, fixed: object, label = labelOf(varied)): ExperimentCase {
  const { rho: _, ...keys } = varied
  return { label, varied, scenario: parseScenario({ ...BASE, ...fixed, ...keys }, `experiment, ${label}`) }
}

/** Each node has an input in a virtual ms, and a message takes a tenth of it. */
const FAST_NETWORK = { algorithm: 'admb', average: 'none', carry: 64, latency: 0.1, period: 0.2 }

/** Regret per input, in nats, that the experiment `speedup` waits for. */
const EXCESS = 0.02

/** Virtual ms after which the regret per input stays below `excess`, between points of the curve on logarithmic axes. */
function timeTo(excess: number, { result: { curve } }: Measured): number | undefined {
  const last = curve.findLastIndex(({ regret, inputs }) => regret > excess * inputs)
  const [before, after] = [curve[last], curve[last + 1]]
  if (before === undefined || after === undefined) return after?.virtualMs
  const [high, low] = [before, after].map(({ regret, inputs }) => Math.log(regret / inputs))
  return before.virtualMs * (after.virtualMs / before.virtualMs) ** ((high - Math.log(excess)) / (high - low))
}

function labelOf(varied: Record<string, string | number>): string {
  return Object.entries(varied)
    .map(([key, value]) => (key === 'algorithm' ? `${value}` : `${key} ${value}`))
    .join(', ')
}

export const experiments: Readonly<Record<string, Experiment>> = {
  A: {
    about: 'serial mini-batching with several batch sizes b',
    cases: inputs => [1, 32, 1024].map(batch => oneCase({ batch }, { algorithm: 'serial', nodes: 1, inputs }))
  },
  B: {
    about: 'serial learner, DMB, ADMB, and isolated nodes (with b = 1), for 32 and 1024 nodes',
    cases: inputs =>
      [32, 1024].flatMap(nodes =>
        ['serial', 'dmb', 'admb', 'isolated'].map(algorithm =>
          oneCase(
            { algorithm, nodes },
            { batch: algorithm === 'isolated' ? 1 : 1024, inputs, latency: 0.1, period: 0.1 }
          )
        )
      )
  },
  C: {
    about: 'DMB on 32 nodes with increasing latency, so that more inputs are unused during each sum',
    cases: inputs =>
      [0.05, 0.2, 0.8, 3.2, 6.4].map(latency =>
        oneCase({ latency }, { algorithm: 'dmb', nodes: 32, batch: 1024, inputs })
      )
  },
  D: {
    about: 'DMB on 32 nodes with latency: average loss by batch size b for several numbers of inputs',
    cases: inputs =>
      [inputs / 16, inputs / 4, inputs].flatMap(m =>
        [32, 64, 128, 256, 512, 1024, 4096].map(batch =>
          oneCase({ inputs: Math.round(m), batch }, { algorithm: 'dmb', nodes: 32, latency: 0.8 })
        )
      )
  },
  precedence: {
    about:
      'inputs until every node has updated (start / b), from distinct starting predictors: precedence by origin and by sender',
    cases: () =>
      [
        { topology: 'path', nodes: 3 },
        { topology: 'star', nodes: 16 }
      ].flatMap(shape =>
        ['admb', 'admb-sender'].flatMap(algorithm =>
          [1, 5].map(period => {
            const fixed = { ...DENSE, ...DISTINCT_STARTS, ...shape, inputs: 20 * DISTINCT_STARTS.batch }
            return oneCase({ topology: shape.topology, algorithm, period }, fixed)
          })
        )
      )
  },
  faults: {
    about:
      'ADMB on 64 nodes with the overlay, under faults: crashes, absences, partitions, lost messages, uneven links and nodes',
    cases: inputs => {
      const healthy = { ...DENSE, ...NETWORK, inputs }
      const faultyCase = (varied: Record<string, string | number>, faults: object) => ({
        ...oneCase({}, { ...healthy, faults }),
        label: labelOf(varied),
        varied
      })
      const partitions = { partitionShare: 0.2, partitionMode: 'uniform' }
      return [
        oneCase({ algorithm: 'serial' }, healthy),
        oneCase({}, healthy, 'nothing fails'),
        ...[0.05, 0.1, 0.2, 0.4].map(crashShare => faultyCase({ crashShare }, { crashShare, silentShare: 0.5 })),
        ...[50, 200, 800].map(partitionTime => faultyCase({ partitionTime }, { ...partitions, partitionTime })),
        ...['random', 'isolate', 'split'].map(partitionMode =>
          faultyCase({ partitionMode }, { ...partitions, partitionMode })
        ),
        ...[0.1, 0.3].map(awayShare => faultyCase({ awayShare }, { awayShare })),
        ...[0.1, 0.3, 0.5].map(loss => oneCase({ loss }, healthy)),
        ...[0.5, 1].map(speedSpread => oneCase({ speedSpread }, healthy)),
        ...[0.5, 1].map(linkSpread => oneCase({ linkSpread }, healthy)),
        faultyCase({ crashShare: 0.1, partitionTime: 200 }, { ...partitions, crashShare: 0.1, silentShare: 0.5 })
      ]
    }
  },
  speedup: {
    about: `ADMB on 1 to 1,024 nodes: virtual ms until the regret is ${EXCESS} nats an input, and efficiency relative to one node`,
    cases: inputs =>
      [
        [128, [1, 4, 16, 64, 256]],
        [512, [1, 64, 256, 1024]],
        [2048, [1, 256, 1024]]
      ].flatMap(([batch, sizes]) =>
        (sizes as number[]).map(nodes =>
          oneCase({ batch: batch as number, nodes }, { ...DENSE, ...FAST_NETWORK, inputs })
        )
      ),
    measures: {
      'virtual ms': run => timeTo(EXCESS, run),
      efficiency: (run, before) => {
        const times = [timeTo(EXCESS, before[0] ?? run), timeTo(EXCESS, run)]
        return times[0] && times[1] && times[0] / (times[1] * run.scenario.nodes)
      }
    }
  },
  rates: {
    about:
      'regret for b = m^ρ, and its slope on a plot with logarithmic axes: d log regret / d log m, from the row before',
    cases: inputs =>
      ['serial', 'dmb', 'admb'].flatMap(algorithm =>
        [
          ...['0.33', '0.5', '0.67'].map(rho => [rho, { batch: `m^${rho}` }] as const),
          ...['0.33', '0.5', '0.67'].map(rho => [`${rho} anytime`, { batch: 1, batchPower: Number(rho) }] as const)
        ].flatMap(([rho, batch]) =>
          [inputs / 64, inputs / 16, inputs / 4, inputs].map(m => {
            const fixed = { ...DENSE, algorithm, average: 'none', nodes: algorithm === 'serial' ? 1 : 16, ...batch }
            return oneCase({ algorithm, rho, inputs: Math.round(m) }, fixed)
          })
        )
      ),
    measures: {
      b: ({ scenario }) => scenario.batch,
      slope: ({ scenario, result }, before) => {
        const last = before.at(-1)
        if (last === undefined || last.scenario.inputs >= scenario.inputs) return undefined
        return Math.log(result.regret / last.result.regret) / Math.log(result.inputs / last.result.inputs)
      }
    }
  },
  field: {
    about:
      "ADMB beside others' algorithms on 30 nodes under the same faults; a virtual ms is a ms, so that a node fails every minute, or every 15 s",
    cases: inputs =>
      FIELD_FAULTS.flatMap(([label, faults]) =>
        FIELD.map(([name, keys]) => ({
          ...oneCase({}, { ...FIELD_NETWORK, ...faults, ...keys, inputs }),
          label: `${name}, ${label}`,
          varied: { algorithm: name, faults: label }
        }))
      )
  }
}

/** @throws ScenarioError for an unknown name */
export function experimentNamed(name: string): Experiment {
  const experiment = experiments[name]
  if (experiment === undefined) {
    throw new ScenarioError(`unknown experiment '${name}'; expected one of ${Object.keys(experiments).join(', ')}`)
  }
  return experiment
}

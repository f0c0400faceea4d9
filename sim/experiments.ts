/**
 * The experiments of the papers, on a sparse logistic stream in place of their web-search stream: what is varied, and the
 * scenarios that vary it. Dekel et al., "Optimal Distributed Online Prediction Using Mini-Batches" (JMLR 2012), section 7.
 */
import { parseScenario, type Scenario, ScenarioError } from './scenario.js'

export interface Case {
  /** What sets this run apart, for the table. */
  readonly label: string
  readonly varied: Readonly<Record<string, string | number>>
  readonly scenario: Scenario
}

export interface Experiment {
  readonly about: string
  cases(inputs: number): Case[]
}

/** Properties are the fuzzer's affair; experiments are long. */
const BASE = { checks: false, stream: 'sparse', dimension: 1000, rule: 'dual-averaging', average: 'uniform' }

const DENSE = { stream: 'logistic', dimension: 20 }
/** The highest index in the middle: the 1-5-2 of the reference, and the star whose hub gives way to everyone. */
const STARTS = { batch: 200, labels: 'hub-highest', starts: 'distinct', carry: 0 }

/** As in the scenario `faulty`. */
const NETWORK = { topology: 'overlay', nodes: 64, degree: 4, batch: 512, carry: 64, warmup: 400 }

function oneCase(varied: Record<string, string | number>, fixed: object, label = labelOf(varied)): Case {
  return { label, varied, scenario: parseScenario({ ...BASE, ...fixed, ...varied }, `experiment, ${label}`) }
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
    about: 'one learner, DMB, ADMB, and nodes without communication (each with b = 1), for 32 and 1024 nodes',
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
    about: 'DMB on 32 nodes with growing latency, so that more inputs pass unused during each sum',
    cases: inputs =>
      [0.05, 0.2, 0.8, 3.2, 6.4].map(latency =>
        oneCase({ latency }, { algorithm: 'dmb', nodes: 32, batch: 1024, inputs })
      )
  },
  D: {
    about: 'DMB on 32 nodes with latency: average loss against the batch size b for several numbers of inputs',
    cases: inputs =>
      [inputs / 16, inputs / 4, inputs].flatMap(m =>
        [32, 64, 128, 256, 512, 1024, 4096].map(batch =>
          oneCase({ inputs: Math.round(m), batch }, { algorithm: 'dmb', nodes: 32, latency: 0.8 })
        )
      )
  },
  precedence: {
    about:
      'inputs until every node has updated (starts / b), from distinct starts with as many updates: precedence by origin and by sender',
    cases: () =>
      [
        { topology: 'path', nodes: 3 },
        { topology: 'star', nodes: 16 }
      ].flatMap(shape =>
        ['admb', 'admb-sender'].flatMap(algorithm =>
          [1, 5].map(period => {
            const fixed = { ...DENSE, ...STARTS, ...shape, inputs: 20 * STARTS.batch }
            return oneCase({ topology: shape.topology, algorithm, period }, fixed)
          })
        )
      )
  },
  faults: {
    about:
      'ADMB on 64 nodes whose tree the overlay mends, against what fails: nodes down or away, partitions, lost messages, links and nodes unlike each other',
    cases: inputs => {
      const healthy = { ...DENSE, ...NETWORK, inputs }
      const faulty = (varied: Record<string, string | number>, faults: object) => ({
        ...oneCase({}, { ...healthy, faults }),
        label: labelOf(varied),
        varied
      })
      const partitions = { partitionShare: 0.2, partitionMode: 'uniform' }
      return [
        oneCase({ algorithm: 'serial' }, healthy),
        oneCase({}, healthy, 'nothing fails'),
        ...[0.05, 0.1, 0.2, 0.4].map(crashShare => faulty({ crashShare }, { crashShare, silentShare: 0.5 })),
        ...[50, 200, 800].map(partitionTime => faulty({ partitionTime }, { ...partitions, partitionTime })),
        ...['random', 'isolate', 'split'].map(partitionMode =>
          faulty({ partitionMode }, { ...partitions, partitionMode })
        ),
        ...[0.1, 0.3].map(awayShare => faulty({ awayShare }, { awayShare })),
        ...[0.1, 0.3, 0.5].map(loss => oneCase({ loss }, healthy)),
        ...[0.5, 1].map(speedSpread => oneCase({ speedSpread }, healthy)),
        ...[0.5, 1].map(linkSpread => oneCase({ linkSpread }, healthy)),
        faulty({ crashShare: 0.1, partitionTime: 200 }, { ...partitions, crashShare: 0.1, silentShare: 0.5 })
      ]
    }
  }
}

/** @throws ScenarioError for an unknown name */
export function experimentNamed(name: string): Experiment {
  const found = experiments[name]
  if (found === undefined) {
    throw new ScenarioError(`there is no experiment ${name}; there are ${Object.keys(experiments).join(', ')}`)
  }
  return found
}

/**
 * The experiments of the papers, on a sparse logistic stream instead of their web-search stream. Dekel et al., "Optimal Distributed Online Prediction Using Mini-Batches" (JMLR 2012), section 7.
 */
import { parseScenario, type Scenario, ScenarioError } from './scenario.js'

export interface ExperimentCase {
  /** Name of the run in tables. */
  readonly label: string
  /** The keys of the scenario that the experiment varies. */
  readonly varied: Readonly<Record<string, string | number>>
  readonly scenario: Scenario
}

export interface Experiment {
  readonly about: string
  cases(inputs: number): ExperimentCase[]
}

/** Without checks: experiments are long, and the fuzzer checks the properties. */
const BASE = { checks: false, stream: 'sparse', dimension: 1000, rule: 'dual-averaging' }

const DENSE = { stream: 'logistic', dimension: 20 }
/** The node in the middle has the highest index, the lowest precedence: the path 1-5-2 of the reference, and the hub of a star. */
const DISTINCT_STARTS = { batch: 200, labels: 'hub-highest', starts: 'distinct', carry: 0 }

/** As in the scenario `faulty`. */
const NETWORK = { topology: 'overlay', nodes: 64, degree: 4, batch: 512, carry: 64, warmup: 400 }

function oneCase(varied: Record<string, string | number>, fixed: object, label = labelOf(varied)): ExperimentCase {
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

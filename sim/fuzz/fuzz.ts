/**
 * Random scenarios with faults of all kinds, run with the exact learner until one violates a property. A violation comes
 * with the scenario that shows it again.
 */
import { exactInvariants } from '../checkers/index.js'
import { Random } from '../engine/random.js'
import { parseScenario, type Scenario } from '../scenario.js'
import { simulate } from '../simulate.js'
import { TOPOLOGIES } from '../topology.js'
import { CountingInputs, countingRecipe } from './counting.js'

export interface Violation {
  /** Seed of the failing scenario. */
  readonly seed: number
  readonly property: string
  /** The scenario, as `admb sim fuzz` runs it. */
  readonly schedule: Scenario
}

export interface FuzzReport {
  readonly runs: number
  readonly violations: readonly Violation[]
}

/**
 * @param onRun called after every run with the number of runs so far
 * @returns after the first violation, or when all runs are done
 */
export function fuzz(runs: number, seed: number, onRun: (done: number) => void = () => undefined): FuzzReport {
  const random = new Random(seed, 'fuzz')
  for (let run = 1; run <= runs; run++) {
    const scenario = randomScenario(random)
    const [property] = check(scenario)
    onRun(run)
    if (property !== undefined)
      return { runs: run, violations: [{ seed: scenario.seed, property, schedule: scenario }] }
  }
  return { runs, violations: [] }
}

/** What the exact learner finds wrong with a scenario's run. */
export function check(scenario: Scenario): readonly string[] {
  const inputs = new CountingInputs(scenario.inputs)
  return simulate(scenario, { inputs, recipe: countingRecipe, invariants: exactInvariants(inputs), settle: true })
    .violations
}

function randomScenario(random: Random): Scenario {
  const oneOf = <T>(...items: T[]): T => items[random.below(items.length)]
  const sometimes = (most: number) => (random.below(2) === 0 ? 0 : random.next() * most)
  return parseScenario(
    {
      algorithm: 'admb',
      topology: oneOf(...TOPOLOGIES),
      nodes: 2 + random.below(11),
      degree: 2 + random.below(4),
      labels: oneOf('ascending', 'random', 'hub-highest'),
      inputs: 100 + random.below(400),
      batch: 1 + random.below(60),
      period: 0.5 + random.next() * 3,
      latency: 0.1 + random.next() * 5,
      delay: oneOf('constant', 'uniform', 'exponential', 'log-normal'),
      loss: sometimes(0.4),
      duplicate: sometimes(0.4),
      carry: oneOf(0, 1, 5, 25),
      seed: random.integer(),
      faults: {
        crashShare: sometimes(0.4),
        downtime: 1 + random.next() * 20,
        partitionShare: sometimes(0.6),
        partitionTime: 1 + random.next() * 30
      }
    },
    'fuzz'
  )
}

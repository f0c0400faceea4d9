/**
 * Random scenarios for property tests: small networks on which rare things are likely. Batches are small beside what the nodes
 * take in, so that many predictors compete; delays lie on both sides of the period; every fault of the network is on in about
 * half of the scenarios.
 */
import fc from 'fast-check'
import { parseScenario, type Scenario } from '../scenario.js'
import { TOPOLOGIES } from '../topology.js'

/** Most nodes and inputs of a scenario. */
export const MOST_NODES = 12
export const MOST_INPUTS = 400

/** A whole number of hundredths: short to print, and shrinking ends soon. */
function hundredths(least: number, most: number): fc.Arbitrary<number> {
  return fc.integer({ min: Math.round(least * 100), max: Math.round(most * 100) }).map(value => value / 100)
}

/** A share that is 0 in half of the scenarios. */
function sometimes(most: number): fc.Arbitrary<number> {
  return fc.oneof(fc.constant(0), hundredths(0.01, most))
}

/**
 * Scenarios without faults of nodes; those come as a schedule (`faultSchedules`).
 * @param fixed keys that are the same in every scenario
 */
export function scenarios(fixed: Partial<Scenario> = {}): fc.Arbitrary<Scenario> {
  const drawn = fc.record({
    topology: fc.constantFrom(...TOPOLOGIES),
    nodes: fc.integer({ min: 2, max: MOST_NODES }),
    degree: fc.integer({ min: 2, max: 5 }),
    labels: fc.constantFrom('ascending', 'random', 'hub-highest'),
    inputs: fc.integer({ min: 10, max: MOST_INPUTS }),
    batch: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 60 })),
    interval: fc.constantFrom(1, 1, 4),
    speedSpread: sometimes(1),
    phases: fc.constantFrom('aligned', 'spread'),
    warmup: fc.constantFrom(0, 20),
    period: hundredths(0.5, 4),
    latency: fc.oneof(hundredths(0.1, 1), hundredths(0.1, 5)),
    delay: fc.constantFrom('constant', 'uniform', 'exponential', 'log-normal'),
    linkSpread: sometimes(1),
    bandwidth: fc.oneof(
      { weight: 3, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.integer({ min: 5000, max: 100_000 }) }
    ),
    loss: sometimes(0.4),
    duplicate: sometimes(0.4),
    reorder: sometimes(0.4),
    carry: fc.constantFrom(0, 1, 5, 25),
    fragmentBytes: fc.constantFrom(1 << 20, 1 << 20, 1 << 20, 0, 100),
    checkpoint: fc.integer({ min: 1, max: 8 }),
    diskTime: sometimes(5),
    seed: fc.nat()
  })
  return drawn.map(values => {
    const scenario = { algorithm: 'admb', ...values, ...fixed }
    // A link on which an answer takes longer than silence may last is none to the overlay, and with degree 2 there may be no other.
    if (scenario.topology === 'overlay') scenario.linkSpread = Math.min(scenario.linkSpread, 0.5)
    return parseScenario(scenario, 'a drawn scenario')
  })
}

/**
 * Arbitraries of scenarios for property tests: small networks in which rare events are likely. Batches are small compared with
 * the rate of inputs, so that many predictors compete; delays are shorter or longer than the period; each network fault is enabled
 * in about half of the scenarios.
 */
import fc from 'fast-check'
import { UNLIMITED_CARRY } from '../checkers/exact.js'
import { parseScenario, type Scenario } from '../scenario.js'
import { topologyNames } from '../topology.js'

/** Maximum numbers of nodes and inputs of a scenario. */
const MAX_NODES = 12
const MAX_INPUTS = 400

/** A multiple of 0.01, which is short to print and quick to shrink. */
function hundredths(least: number, most: number): fc.Arbitrary<number> {
  return fc.integer({ min: Math.round(least * 100), max: Math.round(most * 100) }).map(value => value / 100)
}

/** A share that is 0 in half of the scenarios. */
function optionalShare(most: number): fc.Arbitrary<number> {
  return fc.oneof(fc.constant(0), hundredths(0.01, most))
}

/** Keys with the same value in every scenario. */
export type FixedKeys = Partial<Omit<Scenario, 'trust'>> & { readonly trust?: Partial<Scenario['trust']> }

/**
 * Scenarios without `faults`, which `faultSchedules` draws.
 * @param fixed keys with the same value in every scenario
 * @example
 * const [scenario] = fc.sample(scenarios({ nodes: 4 }), 1)
 */
export function scenarios(fixed: FixedKeys = {}): fc.Arbitrary<Scenario> {
  const drawn = fc.record({
    topology: fc.constantFrom(...topologyNames),
    nodes: fc.integer({ min: 2, max: MAX_NODES }),
    degree: fc.integer({ min: 2, max: 5 }),
    labels: fc.constantFrom('ascending', 'random', 'hub-highest'),
    inputs: fc.integer({ min: 10, max: MAX_INPUTS }),
    batch: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 60 })),
    interval: fc.constantFrom(1, 1, 4),
    speedSpread: optionalShare(1),
    phases: fc.constantFrom('aligned', 'spread'),
    warmup: fc.constantFrom(0, 20),
    period: hundredths(0.5, 4),
    latency: fc.oneof(hundredths(0.1, 1), hundredths(0.1, 5)),
    delay: fc.constantFrom('constant', 'uniform', 'exponential', 'log-normal'),
    linkSpread: optionalShare(1),
    bandwidth: fc.oneof(
      { weight: 3, arbitrary: fc.constant(0) },
      // Heartbeats wait for frames in front of them, which sessions of real peers let them overtake: a frame must take less than the time-out.
      { weight: 1, arbitrary: fc.integer({ min: 10_000, max: 100_000 }) }
    ),
    loss: optionalShare(0.4),
    duplicate: optionalShare(0.4),
    reorder: optionalShare(0.4),
    carry: fc.constantFrom(0, 1, 5, 25, UNLIMITED_CARRY),
    pushBytes: fc.constantFrom(1 << 16, 0),
    fragmentBytes: fc.constantFrom(1 << 20, 1 << 20, 1 << 20, 0, 100),
    checkpoint: fc.integer({ min: 1, max: 8 }),
    diskTime: optionalShare(5),
    journal: fc.boolean(),
    sums: fc.constantFrom('exact', 'lattice'),
    seed: fc.nat()
  })
  return drawn.map(values => {
    const scenario = { algorithm: 'admb', ...values, ...fixed }
    // Derived from the seed, so that the other draws do not depend on it.
    const isAdaptive = scenario.seed % 4 === 3 && scenario.algorithm === 'admb'
    const bounded = scenario.seed % 16 === 6 && scenario.algorithm === 'admb'
    const batchMax = isAdaptive ? scenario.batch + (scenario.seed % 101) : undefined
    // A request and its response take many attempts if frames are lost or overtaken.
    const isOrdered = scenario.delay === 'constant' && scenario.loss === 0 && scenario.reorder === 0
    if (!isOrdered) scenario.pushBytes = 1 << 16
    // So do the fragments of a sum, which has several blocks where b adapts or influence is bounded.
    if (!isOrdered && (isAdaptive || bounded)) scenario.fragmentBytes = 1 << 20
    // The overlay cannot use links whose round trip exceeds its timeout, and with degree 2 there may be no other links.
    if (scenario.topology === 'overlay') scenario.linkSpread = Math.min(scenario.linkSpread, 0.5)
    const keptBytes = scenario.seed % 5 === 2 ? 0 : 1 << 24
    const autoPeriod = scenario.seed % 7 > 3 && scenario.algorithm === 'admb'
    const signed = scenario.seed % 3 > 0
    const tabLinks = scenario.seed % 4 === 3
    const mostTabs = (tabLinks ? scenario.nodes : Math.min(scenario.degree, scenario.nodes)) - 1
    const hasTabs = scenario.topology === 'overlay' && scenario.seed % 2 > 0
    const tabs = hasTabs ? Math.min(1 + (scenario.seed % 5), mostTabs) : 0
    const mostHosts = scenario.nodes - tabs
    // If tabs can dial all others and each other, any of them may leave.
    const tabHosts = scenario.seed % 8 === 7 ? mostHosts : Math.min(1 + (scenario.seed % 3), mostHosts)
    return parseScenario(
      {
        batchMax,
        autoPeriod,
        keptBytes,
        signed,
        tabs,
        tabHosts,
        tabLinks,
        ...scenario,
        trust: { bounded, ...fixed.trust }
      },
      'a drawn scenario'
    )
  })
}

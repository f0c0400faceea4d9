/**
 * Trials of property tests: arbitraries of scenarios and of fault schedules, and the check of both with the exact learner.
 * Networks are small, and rare events are likely. Batches are small compared with the rate of inputs, so that many predictors compete;
 * delays are shorter or longer than the period; each network fault is enabled in about half of the scenarios. A fault schedule remains
 * valid if a fault is removed, or with fewer nodes or a shorter run, so that schedules shrink well.
 */
import fc from 'fast-check'
import { checkSumBytes } from '../../src/learning/index.js'
import {
  CountingInputs,
  countingRecipe,
  countSegment,
  sparseCountingRecipe,
  UNLIMITED_CARRY
} from '../checkers/exact.js'
import { exactInvariants, invariants } from '../checkers/index.js'
import type { Fault } from '../faults/schedule.js'
import type { SimulateOptions } from '../options.js'
import { parseScenario, type Scenario } from '../scenario.js'
import { simulate } from '../simulate.js'
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
    const { sumBytes } = scenario
    const isAdaptive = sumBytes === undefined && scenario.seed % 4 === 3 && scenario.algorithm === 'admb'
    const bounded = sumBytes === undefined && scenario.seed % 16 === 6 && scenario.algorithm === 'admb'
    const batchMax = isAdaptive ? scenario.batch + (scenario.seed % 101) : undefined
    // A request and its response take many attempts if frames are lost or overtaken.
    const isOrdered = scenario.delay === 'constant' && scenario.loss === 0 && scenario.reorder === 0
    if (!isOrdered) scenario.pushBytes = 1 << 16
    // The fragments of a sum take as many attempts. A sum has several blocks where b adapts or influence is bounded.
    if (!isOrdered && (isAdaptive || bounded)) scenario.fragmentBytes = 1 << 20
    // The overlay cannot use links whose round trip exceeds its timeout, and with degree 2 there may be no other links.
    if (scenario.topology === 'overlay') scenario.linkSpread = Math.min(scenario.linkSpread, 0.5)
    const keptBytes = scenario.seed % 5 === 2 ? 0 : 1 << 24
    const downloadTime = scenario.seed % 6 > 3 ? scenario.seed % 71 : undefined
    const autoPeriod = scenario.seed % 7 > 3 && scenario.algorithm === 'admb'
    const signed = scenario.seed % 3 > 0
    const nodeBandwidth = scenario.seed % 32 === 21 ? 20_000 : 0
    const updateTime = scenario.seed % 32 === 11 ? 1 : 0
    const tabLinks = scenario.seed % 4 === 3
    const maxTabs = (tabLinks ? scenario.nodes : Math.min(scenario.degree, scenario.nodes)) - 1
    const hasTabs = scenario.topology === 'overlay' && scenario.seed % 2 > 0
    const tabs = hasTabs ? Math.min(1 + (scenario.seed % 5), maxTabs) : 0
    const mostHosts = scenario.nodes - tabs
    // If tabs can dial all others and each other, any of them may leave.
    const tabHosts = scenario.seed % 8 === 7 ? mostHosts : Math.min(1 + (scenario.seed % 3), mostHosts)
    return parseTrialScenario(
      {
        batchMax,
        autoPeriod,
        keptBytes,
        downloadTime,
        nodeBandwidth,
        updateTime,
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

/**
 * Parses the scenario of a trial. It may have `sumBytes` without local steps, which the exact learner does not make.
 * @param source of the values, for messages
 * @throws ScenarioError, OptionError for a budget out of range
 */
export function parseTrialScenario(values: unknown, source: string): Scenario {
  const { sumBytes, ...keys } = Object(values) as Partial<Scenario>
  if (sumBytes === undefined) return parseScenario(values, source)
  checkSumBytes(sumBytes)
  return { ...parseScenario(keys, source), sumBytes }
}

/** The run that a schedule is for. */
export interface Extent {
  readonly nodes: number
  /** End of the faults in virtual milliseconds. */
  readonly until: number
}

/** A fault and its end, relative to the number of nodes and the length of the run. */
type LooseFault = (extent: Extent) => readonly Fault[]

/** Thousandths of the run. */
const start = fc.nat(999)
const length = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 400 }))
const node = fc.nat(1000)

function between<T>(
  fields: { readonly [K in keyof T]: fc.Arbitrary<T[K]> },
  make: (from: number, to: number, fields: T, nodes: number) => readonly Fault[]
): fc.Arbitrary<LooseFault> {
  return fc.tuple(start, length, fc.record(fields) as fc.Arbitrary<T>).map(
    ([from, span, values]): LooseFault =>
      ({ nodes, until }) =>
        make(round((from / 1000) * until), round(((from + span) / 1000) * until), values, nodes)
  )
}

const outage = between(
  { node, disk: fc.constantFrom('kept' as const, 'lost' as const, 'reset' as const), silent: fc.boolean() },
  (from, to, { node: which, disk, silent }, nodes) => [
    { time: from, kind: 'crash', node: which % nodes, ...(silent && { silent }) },
    { time: to, kind: 'restart', node: which % nodes, disk }
  ]
)
const pause = between({ node }, (from, to, { node: which }, nodes) => [
  { time: from, kind: 'pause', node: which % nodes },
  { time: to, kind: 'resume', node: which % nodes }
])
const hang = between({ node }, (from, to, { node: which }, nodes) => [
  { time: from, kind: 'hang', node: which % nodes },
  { time: to, kind: 'unhang', node: which % nodes }
])
const absence = between({ node }, (from, to, { node: which }, nodes) => [
  { time: from, kind: 'leave', node: which % nodes },
  { time: to, kind: 'join', node: which % nodes }
])
const partition = between(
  {
    sides: fc.oneof(
      node.map(one => 2 ** (one % 24)),
      fc.nat(2 ** 24 - 1)
    ),
    oneWay: fc.boolean()
  },
  (from, to, { sides, oneWay }, nodes) => [
    { time: from, kind: 'partition', sides: Array.from({ length: nodes }, (_, i) => (sides >> (i % 24)) & 1), oneWay },
    { time: to, kind: 'heal' }
  ]
)
const clog = between({ a: node, b: node, drips: fc.boolean() }, (from, to, { a, b, drips }, nodes) => {
  const link = { from: a % nodes, to: b % nodes, ...(drips && { drips }) }
  return [
    { time: from, kind: 'clog', ...link },
    { time: to, kind: 'unclog', ...link }
  ]
})

/** A link that may close a cycle, and that its ends close at different times. */
const shortcut = between({ a: node, b: node, late: length }, (from, to, { a, b, late }, nodes) => {
  const [one, other] = [a % nodes, b % nodes]
  return [
    { time: from, kind: 'link', from: one, to: other },
    { time: to, kind: 'unlink', from: one, to: other },
    { time: to + late / 10, kind: 'unlink', from: other, to: one }
  ]
})
/** A session that one end loses, and that is opened again. */
const reset = between({ a: node, b: node }, (from, to, { a, b }, nodes) => {
  const link = { from: a % nodes, to: b % nodes }
  return [
    { time: from, kind: 'unlink', ...link },
    { time: to, kind: 'link', ...link }
  ]
})

const looseFaults = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: outage },
    { weight: 2, arbitrary: partition },
    { weight: 2, arbitrary: clog },
    { weight: 1, arbitrary: shortcut },
    { weight: 1, arbitrary: reset },
    { weight: 1, arbitrary: pause },
    { weight: 1, arbitrary: hang },
    { weight: 1, arbitrary: absence }
  ),
  { maxLength: 16, size: 'max' }
)

/** Schedules relative to a run, for arbitraries in which scenario and schedule shrink independently. */
const looseSchedules: fc.Arbitrary<(extent: Extent) => Fault[]> = looseFaults.map(
  list => extent => list.flatMap(trouble => trouble(extent)).sort((a, b) => a.time - b.time)
)

/**
 * Schedules for a run, including empty ones.
 * @example
 * const [faults] = fc.sample(faultSchedules({ nodes: 4, until: 1000 }), 1)
 */
export function faultSchedules(extent: Extent): fc.Arbitrary<Fault[]> {
  return looseSchedules.map(schedule => schedule(extent))
}

function round(time: number): number {
  return Math.round(time * 100) / 100
}

/** A scenario and its fault schedule. */
export interface Trial {
  readonly scenario: Scenario
  readonly faults: readonly Fault[]
}

/** A network without faults and with a constant delay, as the bounds on progress require. */
const FAULT_FREE = {
  delay: 'constant',
  loss: 0,
  duplicate: 0,
  reorder: 0,
  bandwidth: 0,
  nodeBandwidth: 0,
  updateTime: 0,
  linkSpread: 0,
  speedSpread: 0
} satisfies Partial<Scenario>

/**
 * Arbitrary of trials; a sixth of them have no faults.
 * @param fixed keys of the scenario with the same value in every trial
 * @example
 * fc.assert(fc.property(trials(), trial => checkExactly(trial) === undefined), { numRuns: 20 })
 */
export function trials(fixed: FixedKeys = {}): fc.Arbitrary<Trial> {
  const faultFree = scenarios({ ...FAULT_FREE, ...fixed }).map((scenario): Trial => ({ scenario, faults: [] }))
  const faulty = fc.tuple(scenarios(fixed), looseSchedules).map(([scenario, schedule]): Trial => {
    const { nodes, inputs, interval, warmup } = scenario
    const faults = schedule({ nodes, until: warmup + (inputs / nodes) * interval })
    return { scenario, faults: needsHosts(scenario) ? faults.flatMap(fault => withHosts(fault, scenario)) : faults }
  })
  return fc.oneof({ weight: 1, arbitrary: faultFree }, { weight: 5, arbitrary: faulty })
}

/**
 * Arbitrary of trials of the fuzzer: a sixth of them have hostile nodes, and some with integer sums have a budget of elements, which
 * only the exact learner has without local steps.
 */
export function fuzzTrials(fixed: FixedKeys = {}): fc.Arbitrary<Trial> {
  const drawn = fc.oneof({ weight: 5, arbitrary: trials(fixed) }, { weight: 1, arbitrary: hostileTrials(fixed) })
  return drawn.map(({ scenario, faults }) => {
    // Derived from the seed, so that the other draws do not depend on it.
    const { seed, sums, algorithm, trust } = scenario
    const isSparse =
      seed % 16 === 4 && sums === 'lattice' && algorithm === 'admb' && !trust.bounded && fixed.sumBytes === undefined
    return { scenario: isSparse ? { ...scenario, sumBytes: 0.02 } : scenario, faults }
  })
}

/** Whether there are tabs that only the first nodes connect with the others. */
function needsHosts({ nodes, tabs, tabHosts, tabLinks }: Scenario): boolean {
  return tabs > 0 && !(tabLinks && tabs + tabHosts === nodes)
}

/** The fault, unless a node that tabs can dial stays away, or returns with a key that they do not know. */
function withHosts(fault: Fault, { tabHosts }: Scenario): readonly Fault[] {
  const { kind } = fault
  if ((kind === 'leave' || kind === 'join') && fault.node < tabHosts) return []
  if (kind === 'restart' && fault.node < tabHosts && fault.disk === 'lost') return [{ ...fault, disk: 'kept' }]
  return [fault]
}

/** Arbitrary of trials with up to three hostile nodes, which do different things. */
export function hostileTrials(fixed: FixedKeys = {}): fc.Arbitrary<Trial> {
  const nodes = fc.integer({ min: 1, max: 3 })
  const place = fc.constantFrom('inner' as const, 'leaf' as const, 'random' as const)
  const drawn = fc.tuple(trials({ ...fixed, algorithm: 'admb' }), nodes, place, fc.boolean())
  return drawn.map(([{ scenario, faults }, count, where, gate]) => {
    // Derived from the seed, so that the other draws do not depend on it.
    const signers = scenario.signed ? scenario.seed % 4 : 0
    const adversaries = { nodes: Math.min(count, scenario.nodes - 1), kind: 'mixed', place: where, from: 0 } as const
    // A tab bans a hostile node, which may be the only one that it can dial.
    const all = {
      ...scenario,
      gate,
      tabs: 0,
      tabLinks: false,
      ...fixed,
      ...(fixed.algorithm?.endsWith('-overlay') && { algorithm: scenario.algorithm }),
      trust: {
        ...scenario.trust,
        signers,
        ...(scenario.seed % 3 === 0 && { rate: 2000 / scenario.interval }),
        ...fixed.trust
      },
      adversaries: { ...adversaries, ...fixed.adversaries }
    }
    return { scenario: all, faults }
  })
}

/**
 * Runs a trial until the network is quiescent, with the exact learner, which counts how often each gradient is used; with the
 * scenario's stream and rule if influence is bounded.
 * @param options such as a custom `node` or `topology`
 * @returns the violation as `property: detail`; undefined if there is none
 * @example
 * const [trial] = fc.sample(trials({ batch: 4 }), 1)
 * const violation = checkExactly(trial)
 */
export function checkExactly(
  { scenario, faults }: Trial,
  options: Pick<SimulateOptions, 'node' | 'topology' | 'wiring' | 'observer'> = {}
): string | undefined {
  const inputs = new CountingInputs(scenario.inputs)
  // Sums that are scaled down to a bound do not count uses.
  const exact = scenario.trust.bounded
    ? { invariants }
    : {
        inputs,
        recipe: scenario.sumBytes === undefined ? countingRecipe : sparseCountingRecipe,
        noise: countSegment,
        invariants: exactInvariants(inputs)
      }
  try {
    return simulate(scenario, { ...options, ...exact, quiesce: true, faults }).violations[0]
  } catch (error) {
    // An exception of the node is reported and shrunk like a violation.
    return `error: ${(error as Error).message}`
  }
}

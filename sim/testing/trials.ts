/** Trials of property tests: a scenario and its fault schedule, and their check with the exact learner. */
import fc from 'fast-check'
import { CountingInputs, countingRecipe, countSegment } from '../checkers/exact.js'
import { exactInvariants, invariants } from '../checkers/index.js'
import type { Fault } from '../faults/schedule.js'
import type { SimulateOptions } from '../options.js'
import type { Scenario } from '../scenario.js'
import { simulate } from '../simulate.js'
import { looseSchedules } from './fault-schedules.js'
import { type FixedKeys, scenarios } from './scenarios.js'

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
    : { inputs, recipe: countingRecipe, noise: countSegment, invariants: exactInvariants(inputs) }
  try {
    return simulate(scenario, { ...options, ...exact, quiesce: true, faults }).violations[0]
  } catch (error) {
    // An exception of the node is reported and shrunk like a violation.
    return `error: ${(error as Error).message}`
  }
}

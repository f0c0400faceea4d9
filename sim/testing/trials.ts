/** A scenario and what fails in it, drawn together: what one run of a property test is. */
import fc from 'fast-check'
import type { Fault } from '../faults/schedule.js'
import type { Scenario } from '../scenario.js'
import { looseSchedules } from './fault-schedules.js'
import { scenarios } from './scenarios.js'

export interface Trial {
  readonly scenario: Scenario
  readonly faults: readonly Fault[]
}

/** A network that does nothing wrong and takes equally long for everything: what the bounds on progress ask for. */
const CALM = {
  delay: 'constant',
  loss: 0,
  duplicate: 0,
  reorder: 0,
  bandwidth: 0,
  linkSpread: 0,
  speedSpread: 0
} satisfies Partial<Scenario>

/**
 * In a sixth of the trials nothing fails.
 * @param fixed keys of the scenario that are the same in every trial
 */
export function trials(fixed: Partial<Scenario> = {}): fc.Arbitrary<Trial> {
  const calm = scenarios({ ...CALM, ...fixed }).map((scenario): Trial => ({ scenario, faults: [] }))
  const rough = fc.tuple(scenarios(fixed), looseSchedules).map(([scenario, schedule]): Trial => {
    const { nodes, inputs, interval, warmup } = scenario
    return { scenario, faults: schedule({ nodes, until: warmup + (inputs / nodes) * interval }) }
  })
  return fc.oneof({ weight: 1, arbitrary: calm }, { weight: 5, arbitrary: rough })
}

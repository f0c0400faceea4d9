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

/** @param fixed keys of the scenario that are the same in every trial */
export function trials(fixed: Partial<Scenario> = {}): fc.Arbitrary<Trial> {
  const schedules = fc.oneof({ weight: 1, arbitrary: fc.constant(() => []) }, { weight: 4, arbitrary: looseSchedules })
  return fc.tuple(scenarios(fixed), schedules).map(([scenario, schedule]) => {
    const { nodes, inputs, interval } = scenario
    return { scenario, faults: schedule({ nodes, until: (inputs / nodes) * interval }) }
  })
}

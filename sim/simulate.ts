/** The simulator's one function: a scenario in, a measured run out. */
import type { RunResult } from './result.js'
import type { Scenario } from './scenario.js'
import { type SimulateOptions, Simulation } from './simulation.js'

export type { SimulateOptions }

/** Runs a scenario: same scenario, same result, on any machine (`seconds` apart). */
export function simulate(scenario: Scenario, options: SimulateOptions = {}): RunResult {
  const began = performance.now()
  const result = new Simulation(scenario, options).run()
  return { ...result, seconds: (performance.now() - began) / 1000 }
}

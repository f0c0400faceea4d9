/** Runs a scenario and measures its wall-clock time. */
import type { SimulateOptions } from './options.js'
import type { RunResult } from './result.js'
import type { Scenario } from './scenario.js'
import { Simulation } from './simulation.js'

/**
 * Runs a scenario. The result depends on the scenario and options only, except for `seconds`.
 * @example
 * const scenario = parseScenario({ algorithm: 'admb', topology: 'random', nodes: 8, inputs: 2000 }, 'example')
 * const { regret, violations } = simulate(scenario)
 * @throws ScenarioError if the options do not fit the scenario
 */
export function simulate(scenario: Scenario, options: SimulateOptions = {}): RunResult {
  const start = performance.now()
  const result = new Simulation(scenario, options).run()
  return { ...result, seconds: (performance.now() - start) / 1000 }
}

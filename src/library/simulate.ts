/** The simulator for programs: a scenario by name or by its keys. */
import { loadScenario, parseScenario, type RunResult, simulate as run, type SimulateOptions } from '../../sim/index.js'

/** Keys as in scenario files (`docs/simulator.md`); those left out have their defaults. */
export type ScenarioValues = Readonly<Record<string, unknown>>

/**
 * Runs a scenario in virtual time: same scenario, same result, on any machine.
 * @param scenario a built-in one's name, a YAML file, or keys with their values
 * @param values in place of the scenario's
 * @example
 * const { regret } = simulate('binary-tree', { algorithm: 'admb', nodes: 16 })
 * @throws ScenarioError
 */
export function simulate(
  scenario: string | ScenarioValues,
  values: ScenarioValues = {},
  options: SimulateOptions = {}
): RunResult {
  const { source, values: before } =
    typeof scenario === 'string' ? loadScenario(scenario) : { source: 'scenario', values: scenario }
  return run(parseScenario({ ...before, ...values }, source), options)
}

/** The simulator for programs. */
import {
  loadScenario,
  parseScenario,
  type RunResult,
  simulate as run,
  type SimulateOptions,
  simulateType
} from '../../sim/index.js'
import { checkOptions, optionTypes as types } from '../learning/index.js'

/** Keys of a scenario file (`docs/reference/simulator.md`). Missing keys have their defaults. */
export type ScenarioValues = Readonly<Record<string, unknown>>

const scenarioType = types.either(types.text, types.object("{ algorithm: 'admb', nodes: 16 }"))

/**
 * Runs a scenario in virtual time. The same scenario gives the same result on any machine.
 * @param scenario name of a built-in scenario, a YAML file, or keys with their values
 * @param values override the scenario's
 * @example
 * const { regret } = simulate('binary-tree', { algorithm: 'admb', nodes: 16 })
 * @throws ScenarioError; OptionError for an argument of another type
 */
export function simulate(
  scenario: string | ScenarioValues,
  values: ScenarioValues = {},
  options: SimulateOptions = {}
): RunResult {
  checkOptions('the scenario', scenarioType, scenario)
  checkOptions('the values of the scenario', types.object('{ nodes: 16 }'), values)
  checkOptions('the options of simulate', simulateType, options)
  const { source, values: before } =
    typeof scenario === 'string' ? loadScenario(scenario) : { source: 'scenario', values: scenario }
  return run(parseScenario({ ...before, ...values }, source), options)
}

/** What the simulator's commands have in common: a scenario, changed by `--set`, run by one algorithm or another. */
import {
  ALGORITHMS,
  type AlgorithmName,
  builtInScenarios,
  loadScenario,
  override,
  parseScenario,
  type Scenario
} from '../../../sim/index.js'
import { UsageError } from '../errors.js'

export interface ScenarioFlags {
  readonly set?: readonly string[]
  readonly json?: boolean
  /** Folder of the report. */
  readonly report?: string
}

/**
 * @param name a built-in scenario's name or a YAML file; undefined for all defaults
 * @param algorithm in place of the scenario's
 * @throws ScenarioError
 */
export function scenarioOf(name: string | undefined, { set = [] }: ScenarioFlags, algorithm?: string): Scenario {
  const { source, values } = loadScenario(name)
  return parseScenario(override(values, algorithm === undefined ? set : [...set, `algorithm=${algorithm}`]), source)
}

/** What a built-in scenario is about, in a sentence. */
export function aboutOf(name: string | undefined): string | undefined {
  return builtInScenarios().find(scenario => scenario.name === name)?.about
}

/** @throws UsageError for a name that is none */
export function checkAlgorithms(names: readonly string[] = []): void {
  const unknown = names.find(name => !ALGORITHMS.includes(name as AlgorithmName))
  if (unknown === undefined) return
  throw new UsageError(`there is no algorithm ${unknown}; there are ${ALGORITHMS.join(', ')}`)
}

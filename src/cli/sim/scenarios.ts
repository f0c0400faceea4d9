/** What the simulator's commands have in common: a scenario, changed by `--set`, run by one algorithm or another. */
import { algorithmNames, type AlgorithmName, builtInScenarios, loadScenario, applyOverrides, parseScenario, type Scenario } from '../../../sim/index.js'
import { UsageError } from '../errors.js'
import { print, printJson } from '../output/output.js'

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
  return parseScenario(applyOverrides(values, algorithm === undefined ? set : [...set, `algorithm=${algorithm}`]), source)
}

/** What a built-in scenario is about, in a sentence. */
export function aboutOf(name: string | undefined): string | undefined {
  return builtInScenarios().find(scenario => scenario.name === name)?.about
}

/** @throws UsageError for a name that is none */
export function checkAlgorithms(names: readonly string[] = []): void {
  const unknown = names.find(name => !algorithmNames.includes(name as AlgorithmName))
  if (unknown === undefined) return
  throw new UsageError(`there is no algorithm ${unknown}; there are ${algorithmNames.join(', ')}`)
}

export function showScenarios({ json }: { json?: boolean }): void {
  const scenarios = builtInScenarios()
  if (json) {
    printJson({ command: 'sim list', scenarios })
    return
  }
  const width = Math.max(...scenarios.map(({ name }) => name.length))
  for (const { name, about } of scenarios) print(`${name.padEnd(width)}  ${about}`)
  print('\nRun one with: admb sim run NAME. Compare all algorithms on it with: admb sim compare NAME')
}

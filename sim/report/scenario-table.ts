/** What was run: the scenario's keys, with those that were varied, and those that are not as they would be by default. */
import { parseScenario } from '../index.js'
import { type Cell, flatten } from './tables.js'
import type { ReportedRun } from './types.js'

export interface ScenarioEntry {
  readonly key: string
  /** One value if all runs share it. */
  readonly values: readonly Cell[]
  readonly isVaried: boolean
  readonly isDefault: boolean
}

export function scenarioEntries(runs: readonly ReportedRun[]): ScenarioEntry[] {
  const defaults = flatten(parseScenario({}, 'defaults'))
  const all = runs.map(({ scenario }) => flatten(scenario))
  const keys = [...new Set(all.flatMap(scenario => Object.keys(scenario)))]
  return keys.map(key => {
    const values = [...new Set(all.map(scenario => scenario[key]))]
    return { key, values, isVaried: values.length > 1, isDefault: values.length === 1 && values[0] === defaults[key] }
  })
}

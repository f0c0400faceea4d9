/** Loads scenarios, built in or from files, and applies `key=value` overrides. */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { oneOf, SCENARIO_KEYS, ScenarioError } from './scenario.js'
import { scenarios } from './scenarios.js'

export function builtInScenarios(): { readonly name: string; readonly about: string }[] {
  return Object.entries(scenarios).map(([name, { about }]) => ({ name, about }))
}

/**
 * The values of a scenario, not yet validated by `parseScenario`.
 * @param name a built-in scenario or a YAML file; undefined for all defaults
 * @throws ScenarioError
 */
export function loadScenario(name: string | undefined): {
  readonly source: string
  readonly values: Record<string, unknown>
} {
  if (name === undefined) return { source: '--set', values: {} }
  if (Object.hasOwn(scenarios, name)) return { source: name, values: structuredClone(scenarios[name].values) }
  let text: string
  try {
    text = readFileSync(name, 'utf8')
  } catch (error) {
    const names = Object.keys(scenarios)
    const { code } = error as NodeJS.ErrnoException
    const isWord = /^[\w-]+$/.test(name)
    const what = isWord ? `unknown scenario '${name}'` : `cannot read ${name} (${code})`
    throw new ScenarioError(`${what}; ${oneOf(name, names, 'expected a YAML file or one of')}`)
  }
  let values: unknown
  try {
    values = parse(text)
  } catch (error) {
    throw new ScenarioError(`${name}: invalid YAML: ${(error as Error).message.split('\n')[0]}`)
  }
  if (values !== null && (typeof values !== 'object' || Array.isArray(values))) {
    throw new ScenarioError(`${name}: expected lines of the form key: value`)
  }
  return { source: name, values: { ...(values as Record<string, unknown> | null) } }
}

/**
 * Applies `key=value` overrides to a scenario's values. Values are parsed as YAML; nested keys are written with a dot.
 * @param option the command-line option, named in errors
 * @throws ScenarioError for an unknown key or a malformed override
 */
export function applyOverrides(
  values: Record<string, unknown>,
  overrides: readonly string[],
  option = '--set'
): Record<string, unknown> {
  const result = structuredClone(values)
  for (const text of overrides) {
    const separator = text.indexOf('=')
    const key = text.slice(0, separator)
    if (separator < 1) throw new ScenarioError(`${option} ${text}: expected key=value`)
    if (!SCENARIO_KEYS.includes(key)) {
      throw new ScenarioError(`${option} ${text}: unknown key '${key}'; ${oneOf(key, SCENARIO_KEYS)}`)
    }
    const path = key.split('.')
    const last = path.pop() as string
    let target = result
    for (const step of path) {
      const inner = { ...(target[step] as object | undefined) }
      target[step] = inner
      target = inner as Record<string, unknown>
    }
    target[last] = parse(text.slice(separator + 1))
  }
  return result
}

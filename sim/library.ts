/** Where scenarios come from: the built-in ones by name, files, and `key=value` words on top of either. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { SCENARIO_KEYS, ScenarioError } from './scenario.js'

/** The scenarios stay YAML and are read where the sources are: dist/sim → sim/scenarios. */
const FOLDER = fileURLToPath(new URL('../../sim/scenarios', import.meta.url))

export function builtInScenarios(): { readonly name: string; readonly about: string }[] {
  return readdirSync(FOLDER)
    .filter(file => file.endsWith('.yaml'))
    .sort()
    .map(file => {
      const [first] = readFileSync(join(FOLDER, file), 'utf8').split('\n')
      return { name: basename(file, '.yaml'), about: first.replace(/^#\s*/, '') }
    })
}

/**
 * A scenario's values, unchecked: pass them to `parseScenario`.
 * @param name a built-in scenario's name or a YAML file; undefined for all defaults
 * @throws ScenarioError
 */
export function loadScenario(name: string | undefined): {
  readonly source: string
  readonly values: Record<string, unknown>
} {
  if (name === undefined) return { source: '--set', values: {} }
  const builtIn = builtInScenarios().some(scenario => scenario.name === name)
  const file = builtIn ? join(FOLDER, `${name}.yaml`) : name
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const names = builtInScenarios().map(scenario => scenario.name)
    const { code } = error as NodeJS.ErrnoException
    throw new ScenarioError(`${name}: cannot be read (${code}): give a YAML file or one of ${names.join(', ')}`)
  }
  let values: unknown
  try {
    values = parse(text)
  } catch (error) {
    throw new ScenarioError(`${name} is not YAML: ${(error as Error).message.split('\n')[0]}`)
  }
  if (values !== null && (typeof values !== 'object' || Array.isArray(values))) {
    throw new ScenarioError(`${name} must hold key: value lines`)
  }
  return { source: name, values: { ...(values as Record<string, unknown> | null) } }
}

/**
 * Puts `key=value` words over a scenario's values; values are read as YAML, inner keys are written with a dot.
 * @param option the option that the words were given with, to name in errors
 * @throws ScenarioError for an unknown key or a word that is none of these
 */
export function override(
  values: Record<string, unknown>,
  words: readonly string[],
  option = '--set'
): Record<string, unknown> {
  const result = structuredClone(values)
  for (const word of words) {
    const at = word.indexOf('=')
    const key = word.slice(0, at)
    if (at < 1) throw new ScenarioError(`${option} ${word}: write key=value`)
    if (!SCENARIO_KEYS.includes(key)) {
      throw new ScenarioError(`${option} ${word}: there is no key ${key}; there are ${SCENARIO_KEYS.join(', ')}`)
    }
    const path = key.split('.')
    const last = path.pop() as string
    let target = result
    for (const step of path) {
      const inner = { ...(target[step] as object | undefined) }
      target[step] = inner
      target = inner as Record<string, unknown>
    }
    target[last] = parse(word.slice(at + 1))
  }
  return result
}

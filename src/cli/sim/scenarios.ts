/** Shared by the simulator's commands: loading a scenario with `--set` and its data, listing scenarios, and checking algorithm names. */
import {
  type AlgorithmName,
  algorithmNames,
  algorithms,
  applyOverrides,
  builtInScenarios,
  loadScenario,
  parseScenario,
  type RecordedStream,
  type Scenario
} from '../../../sim/index.js'
import { type Format, formatNames } from '../../data/index.js'
import { featuresOf } from '../../learning/index.js'
import { UsageError } from '../errors.js'
import type { Flags } from '../options/table.js'
import { print, printJson } from '../output/output.js'
import { openLearning, Recorder } from '../training/learning.js'
import type { SimFlags } from './options.js'

/**
 * @param name a built-in scenario's name or a YAML file; undefined for all defaults
 * @param algorithm overrides the scenario's
 * @throws ScenarioError
 */
export function scenarioOf(
  name: string | undefined,
  { set = [] }: Pick<SimFlags, 'set'>,
  algorithm?: string
): Scenario {
  const { source, values } = loadScenario(name)
  return parseScenario(
    applyOverrides(values, algorithm === undefined ? set : [...set, `algorithm=${algorithm}`]),
    source
  )
}

/** The description of a built-in scenario, and what differs from it. */
export function aboutOf(name: string | undefined, { set = [] }: Pick<SimFlags, 'set'>): string | undefined {
  const about = builtInScenarios().find(scenario => scenario.name === name)?.about
  return about === undefined || set.length === 0 ? about : `${about} Changed: ${set.join(', ')}.`
}

/** @throws UsageError for an unknown name */
export function checkAlgorithms(names: readonly string[] = []): void {
  const unknown = names.find(name => !algorithmNames.includes(name as AlgorithmName))
  if (unknown === undefined) return
  throw new UsageError(`unknown algorithm '${unknown}'; expected one of ${algorithmNames.join(', ')}`)
}

/** `admb sim list`: the built-in scenarios, and the algorithms with what they predict with. */
export function showScenarios({ json }: { json?: boolean }): void {
  const scenarios = builtInScenarios()
  const table = algorithmNames.map(name => {
    const { help, source, average } = algorithms[name]
    return { name, help, source, average }
  })
  if (json) {
    printJson({ command: 'sim list', scenarios, algorithms: table })
    return
  }
  const width = Math.max(...[...scenarios, ...table].map(({ name }) => name.length))
  for (const { name, about } of scenarios) print(`${name.padEnd(width)}  ${about}`)
  print(`\n${'algorithm'.padEnd(width)}  average  what it does`)
  for (const { name, help, average } of table) print(`${name.padEnd(width)}  ${average.padEnd(7)}  ${help}`)
  print('\nRun a scenario with admb sim run NAME, or compare all algorithms with admb sim compare NAME')
}

/**
 * Reads at most as many inputs as the scenario has.
 * @returns undefined for other streams
 * @throws UsageError, and errors of the parsers
 */
export async function readData(scenario: Scenario): Promise<RecordedStream | undefined> {
  const { stream: name, data, format, label, model, classes, scale, hashBits, inputs } = scenario
  if (name !== 'file' || data === undefined) return undefined
  if (format !== undefined && !formatNames.includes(format as Format)) {
    throw new UsageError(`unknown format '${format}'; expected one of ${formatNames.join(', ')}`)
  }
  return recordStream({
    data,
    format: { format: format as Format },
    label,
    model,
    classes: { classes },
    scale,
    hashBits,
    limit: inputs
  })
}

/**
 * Reads a file into memory, as the learning commands read it.
 * @throws UsageError, and errors of the parsers
 */
export async function recordStream(flags: Flags<'regret'> & { readonly data: string }): Promise<RecordedStream> {
  const { data } = flags
  const { stream, options } = await openLearning(flags)
  const recorder = new Recorder(data)
  for await (const rows of stream) recorder.append(rows)
  const { examples } = recorder
  if (examples.size === 0) throw new UsageError(`data: ${data} has no inputs`)
  return {
    model: options.model,
    classes: options.classes,
    targetScale: options.targetScale,
    dimension: stream.dimension ?? featuresOf(examples),
    examples
  }
}

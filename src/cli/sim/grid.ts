/** Expands `--over` into the runs of a sweep: a validated scenario for every combination of values. */
import { applyOverrides, loadScenario, parseScenario } from '../../../sim/index.js'
import { labelOf } from '../../../sim/report/index.js'
import { parseYaml } from '../../base/files.js'
import { UsageError } from '../errors.js'
import type { SimFlags } from './options.js'
import type { RunCase } from './run-cases.js'

/** A larger grid is probably a mistake. */
const MAX_RUNS = 100_000

type Value = string | number | boolean

/**
 * Returns all combinations; the last key varies fastest.
 * @param axes such as `batch=64,256` or `seed=1..5`
 * @throws UsageError for a malformed axis, ScenarioError for an invalid combination
 */
export function expandGrid(name: string | undefined, flags: SimFlags, axisTexts: readonly string[]): RunCase[] {
  const axes = axisTexts.map(parseAxis)
  const [repeated] = axes.map(({ key }) => key).filter((key, index, keys) => keys.indexOf(key) < index)
  if (repeated !== undefined) throw new UsageError(`--over ${repeated}: given twice; list all values in one --over`)
  const size = axes.reduce((product, { values }) => product * values.length, 1)
  if (size > MAX_RUNS) {
    throw new UsageError(`--over: ${size} runs exceed the limit of ${MAX_RUNS}; list fewer values`)
  }
  const { values } = loadScenario(name)
  const base = applyOverrides(values, flags.set ?? [])
  return combinations(axes).map(varied => {
    const overrides = Object.entries(varied).map(([key, value]) => `${key}=${value}`)
    const scenario = parseScenario(
      applyOverrides(base, overrides, '--over'),
      `${name === undefined ? '' : `${name}, `}--over ${overrides.join(' ')}`
    )
    return { label: labelOf(varied), varied, scenario }
  })
}

interface Axis {
  readonly key: string
  readonly values: readonly Value[]
}

function parseAxis(text: string): Axis {
  const separator = text.indexOf('=')
  if (separator < 1 || separator === text.length - 1) {
    throw new UsageError(`--over ${text}: expected key=value,value,… or, for whole numbers, key=FROM..TO`)
  }
  const values = text
    .slice(separator + 1)
    .split(',')
    .flatMap(item => parseValues(item, text))
  const distinct = new Set(values)
  if (distinct.size < values.length) throw new UsageError(`--over ${text}: the same value is listed twice`)
  return { key: text.slice(0, separator), values }
}

function parseValues(item: string, axis: string): Value[] {
  const range = /^(\d+)\.\.(\d+)$/.exec(item)
  if (range === null) {
    const value: unknown = parseYaml(item)
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return [value]
    throw new UsageError(`--over ${axis}: ${JSON.stringify(item)} is not a value; expected key=value,value,…`)
  }
  const [from, to] = [Number(range[1]), Number(range[2])]
  if (to < from || to - from >= MAX_RUNS) {
    throw new UsageError(`--over ${axis}: the range ${item} must be ascending, with fewer than ${MAX_RUNS} values`)
  }
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

function combinations(axes: readonly Axis[]): Record<string, Value>[] {
  return axes.reduce<Record<string, Value>[]>(
    (combined, { key, values }) =>
      combined.flatMap(combination => values.map(value => ({ ...combination, [key]: value }))),
    [{}]
  )
}

/** The runs of a sweep: every combination of the values of `--over`, as checked scenarios. */
import { parse } from 'yaml'
import { loadScenario, applyOverrides, parseScenario } from '../../../sim/index.js'
import { labelOf } from '../../../sim/report/index.js'
import { UsageError } from '../errors.js'
import type { RunCase } from './run-cases.js'
import type { ScenarioFlags } from './scenarios.js'

/** More than anyone can wait for, or a slip. */
const MAX_RUNS = 100_000

type Value = string | number | boolean

/**
 * All combinations, the last key varying fastest.
 * @param words such as `batch=64,256` or `seed=1..5`
 * @throws UsageError for words that are none, ScenarioError for a combination that cannot be run
 */
export function expandGrid(name: string | undefined, flags: ScenarioFlags, words: readonly string[]): RunCase[] {
  const axes = words.map(axisOf)
  const [repeated] = axes.map(({ key }) => key).filter((key, index, keys) => keys.indexOf(key) < index)
  if (repeated !== undefined) throw new UsageError(`--over ${repeated}: it is given twice: put all values into one`)
  const size = axes.reduce((product, { values }) => product * values.length, 1)
  if (size > MAX_RUNS) {
    throw new UsageError(`--over: that makes ${size} runs: give fewer values (at most ${MAX_RUNS} runs)`)
  }
  const { values } = loadScenario(name)
  const base = applyOverrides(values, flags.set ?? [])
  return combinations(axes).map(varied => {
    const chosen = Object.entries(varied).map(([key, value]) => `${key}=${value}`)
    const scenario = parseScenario(
      applyOverrides(base, chosen, '--over'),
      `${name === undefined ? '' : `${name}, `}--over ${chosen.join(' ')}`
    )
    return { label: labelOf(varied), varied, scenario }
  })
}

interface Axis {
  readonly key: string
  readonly values: readonly Value[]
}

function axisOf(word: string): Axis {
  const at = word.indexOf('=')
  if (at < 1 || at === word.length - 1) {
    throw new UsageError(`--over ${word}: write key=value,value,… or, for whole numbers, key=FROM..TO`)
  }
  const values = word
    .slice(at + 1)
    .split(',')
    .flatMap(text => valuesOf(text, word))
  const distinct = new Set(values)
  if (distinct.size < values.length) throw new UsageError(`--over ${word}: it has the same value twice`)
  return { key: word.slice(0, at), values }
}

function valuesOf(text: string, word: string): Value[] {
  const range = /^(\d+)\.\.(\d+)$/.exec(text)
  if (range === null) {
    const value: unknown = parse(text)
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return [value]
    throw new UsageError(`--over ${word}: ${JSON.stringify(text)} is no value: write key=value,value,…`)
  }
  const [from, to] = [Number(range[1]), Number(range[2])]
  if (to < from || to - from >= MAX_RUNS) {
    throw new UsageError(`--over ${word}: ${text} must go up, by less than ${MAX_RUNS}`)
  }
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

function combinations(axes: readonly Axis[]): Record<string, Value>[] {
  return axes.reduce<Record<string, Value>[]>(
    (made, { key, values }) => made.flatMap(one => values.map(value => ({ ...one, [key]: value }))),
    [{}]
  )
}

/**
 * The file of a sweep: JSON lines `{scenario, result}`, appended as each run finishes, so that finished runs survive an
 * interruption. The scenario is the key of a run, since it determines the result.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import { applyOverrides, loadScenario, parseScenario, type RunResult, type Scenario } from '../../../sim/index.js'
import { labelOf } from '../../../sim/report/index.js'
import { fileProblem } from '../../base/errors.js'
import { parseYaml } from '../../base/files.js'
import { UsageError } from '../errors.js'
import type { SimFlags } from './options.js'
import type { RunCase } from './run-cases.js'

export class SweepFile {
  readonly #results: ReadonlyMap<string, RunResult>
  readonly #file: number

  /**
   * @param resume whether to load the runs of an existing file
   * @throws UsageError if the file exists without `resume`, is not the file of a sweep, or cannot be written
   */
  constructor(path: string, resume: boolean) {
    if (!resume && existsSync(path)) {
      throw new UsageError(`${path} exists; add --resume to continue it, or choose another file with --out`)
    }
    this.#results = resume && existsSync(path) ? read(path) : new Map()
    try {
      this.#file = openSync(path, 'a')
    } catch (error) {
      throw new UsageError(`--out: cannot write ${path} (${fileProblem(error)})`)
    }
  }

  /** The result of a run that has finished before. */
  resultOf(scenario: Scenario): RunResult | undefined {
    return this.#results.get(JSON.stringify(scenario))
  }

  /** Appends a run and syncs the file. */
  add(scenario: Scenario, result: RunResult): void {
    writeSync(this.#file, `${JSON.stringify({ scenario, result })}\n`)
    fsyncSync(this.#file)
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** Reads the runs of a file, and removes an incomplete last line. */
function read(path: string): Map<string, RunResult> {
  const text = readFileSync(path, 'utf8')
  const complete = text.slice(0, text.lastIndexOf('\n') + 1)
  const results = new Map<string, RunResult>()
  for (const [index, line] of complete.split('\n').entries()) {
    if (line === '') continue
    const location = `${path}, line ${index + 1}`
    const { scenario, result } = parseLine(line, location)
    results.set(JSON.stringify(parseScenario(scenario, location)), result)
  }
  if (complete.length < text.length) truncateSync(path, Buffer.byteLength(complete))
  return results
}

function parseLine(line: string, location: string): { readonly scenario: unknown; readonly result: RunResult } {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    value = undefined
  }
  const { scenario, result } = (value ?? {}) as { scenario?: unknown; result?: RunResult }
  if (scenario !== undefined && Array.isArray(result?.curve)) return { scenario, result: result as RunResult }
  throw new UsageError(`${location}: not a run of a sweep; choose another file with --out`)
}

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

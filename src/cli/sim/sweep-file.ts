/**
 * The file of a sweep: JSON lines `{scenario, result}`, appended as each run finishes, so that finished runs survive an
 * interruption. The scenario is the key of a run, since it determines the result.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import { parseScenario, type RunResult, type Scenario } from '../../../sim/index.js'
import { fileProblem } from '../../base/errors.js'
import { UsageError } from '../errors.js'

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

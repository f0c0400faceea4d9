/**
 * The file of a sweep: a JSON object a line, `{scenario, result}`, written as each run finishes, so that whatever happens later
 * what is finished is kept. A scenario stands for its run: the same one gives the same result.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import { parseScenario, type RunResult, type Scenario } from '../../../sim/index.js'
import { UsageError } from '../errors.js'

export class SweepFile {
  readonly #results: ReadonlyMap<string, RunResult>
  readonly #file: number

  /**
   * @param resume whether the file may have runs already
   * @throws UsageError if it has and may not, if it cannot be written to, or holds something else
   */
  constructor(path: string, resume: boolean) {
    if (!resume && existsSync(path)) {
      throw new UsageError(`${path} is there already: add --resume to go on with it, or give another file with --out`)
    }
    this.#results = resume && existsSync(path) ? read(path) : new Map()
    try {
      this.#file = openSync(path, 'a')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new UsageError(`--out ${path}: cannot be written (${code}): give a file that can`)
    }
  }

  /** What a run came to, if an earlier sweep finished it. */
  resultOf(scenario: Scenario): RunResult | undefined {
    return this.#results.get(JSON.stringify(scenario))
  }

  /** On the disk when this returns. */
  add(scenario: Scenario, result: RunResult): void {
    writeSync(this.#file, `${JSON.stringify({ scenario, result })}\n`)
    fsyncSync(this.#file)
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** The runs of a file. A last line that was cut off as it was written is taken away. */
function read(path: string): Map<string, RunResult> {
  const text = readFileSync(path, 'utf8')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  const results = new Map<string, RunResult>()
  for (const [index, line] of whole.split('\n').entries()) {
    if (line === '') continue
    const place = `${path}, line ${index + 1}`
    const { scenario, result } = parseLine(line, place)
    results.set(JSON.stringify(parseScenario(scenario, place)), result)
  }
  if (whole.length < text.length) truncateSync(path, Buffer.byteLength(whole))
  return results
}

function parseLine(line: string, place: string): { readonly scenario: unknown; readonly result: RunResult } {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    value = undefined
  }
  const { scenario, result } = (value ?? {}) as { scenario?: unknown; result?: RunResult }
  if (scenario !== undefined && Array.isArray(result?.curve)) return { scenario, result: result as RunResult }
  throw new UsageError(`${place}: this is no run of a sweep: give another file with --out`)
}

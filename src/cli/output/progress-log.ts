/**
 * The progressive log of `--log`: JSON lines such as `{"run":"…","inputs":1000,"loss":412.7,"hits":811}`, cumulative sums
 * over all inputs that a run has scored. Only the last line of a run counts, so a restarted peer continues to append under the
 * same id. Files of several peers can be read together or concatenated.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import * as z from 'zod'
import { CodedError, fileProblem } from '../../base/errors.js'

/** A log that cannot be opened, written or read, or that is not a progress log. */
export class ProgressLogError extends CodedError {
  static override readonly code = 'ERR_PROGRESS_LOG'
}
const schema = z.strictObject({
  /** Owner of the sums: a peer's id, or the id of a run of `admb train`. */
  run: z.string().min(1),
  /** Inputs scored so far. */
  inputs: z.int().min(0),
  /** Sum of their losses. */
  loss: z.number(),
  /** Number of correctly predicted classes; omitted for regression. */
  hits: z.int().min(0).optional()
})

export type ProgressEntry = z.infer<typeof schema>

/** An entry from the report of a trainer or peer. */
export function progressEntry(
  run: string,
  report: { inputs: number; weight?: number; averageLoss?: number; accuracy?: number }
): ProgressEntry {
  const { inputs, weight = inputs, averageLoss = 0, accuracy } = report
  const hits = accuracy === undefined ? undefined : Math.round(accuracy * weight)
  return { run, inputs, loss: averageLoss * weight, hits }
}

const BEGINNING = '{"run":'
/** Longer than any line. */
const TAIL_BYTES = 4096
/** A line is due when the inputs have grown by this factor, or after this time in milliseconds. */
const GROWTH = 1.01
const EVERY_MS = 1000

export class ProgressLog {
  readonly #file: string
  readonly #handle: number
  #inputs = 0
  #wrote = Number.NEGATIVE_INFINITY

  /** Opens the file for appending and removes a line that a crash has truncated. @throws ProgressLogError */
  constructor(file: string) {
    this.#file = file
    try {
      this.#handle = openSync(file, 'a+')
    } catch (error) {
      throw this.#failure('opened', error)
    }
    const { size } = fstatSync(this.#handle)
    if (size === 0) return
    if (this.#read(0, BEGINNING.length) !== BEGINNING) {
      closeSync(this.#handle)
      throw new ProgressLogError(`--log ${file}: the file is not a progress log: give another name`)
    }
    const from = Math.max(0, size - TAIL_BYTES)
    ftruncateSync(this.#handle, from + this.#read(from, size - from).lastIndexOf('\n') + 1)
  }

  /** Writes a line if one is due. @throws ProgressLogError */
  note(entry: ProgressEntry): void {
    if (entry.inputs === this.#inputs) return
    if (entry.inputs < GROWTH * this.#inputs && performance.now() < this.#wrote + EVERY_MS) return
    this.#write(entry)
  }

  /** Writes the last line. @throws ProgressLogError */
  end(entry: ProgressEntry): void {
    if (entry.inputs !== this.#inputs) this.#write(entry)
    closeSync(this.#handle)
  }

  #write({ run, inputs, loss, hits }: ProgressEntry): void {
    try {
      writeSync(this.#handle, `${JSON.stringify({ run, inputs, loss, hits })}\n`)
    } catch (error) {
      throw this.#failure('written', error)
    }
    this.#inputs = inputs
    this.#wrote = performance.now()
  }

  #read(from: number, length: number): string {
    const bytes = Buffer.alloc(length)
    return bytes.toString('latin1', 0, readSync(this.#handle, bytes, 0, length, from))
  }

  #failure(what: string, error: unknown): ProgressLogError {
    return new ProgressLogError(
      `--log ${this.#file} cannot be ${what} (${fileProblem(error)}): give a writable file on a disk with free space`
    )
  }
}

/** The sums of several logs. @throws ProgressLogError */
export function readProgress(files: readonly string[]): Omit<ProgressEntry, 'run'> {
  const last = new Map<string, ProgressEntry>()
  for (const file of files) for (const entry of readEntries(file)) last.set(entry.run, entry)
  const runs = [...last.values()]
  const sum = (of: (entry: ProgressEntry) => number) => runs.reduce((total, entry) => total + of(entry), 0)
  return {
    inputs: sum(entry => entry.inputs),
    loss: sum(entry => entry.loss),
    hits: runs.every(({ hits }) => hits !== undefined) ? sum(({ hits = 0 }) => hits) : undefined
  }
}

function readEntries(file: string): ProgressEntry[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ProgressLogError(`cannot read ${file} (${code}): --log takes a file that admb train or peer --log wrote`)
  }
  const lines = text.split('\n')
  // Text after the last newline is a line that a crash has truncated.
  lines.pop()
  return lines.map((line, index) => {
    const parsed = schema.safeParse(asJson(line))
    if (parsed.success) return parsed.data
    throw new ProgressLogError(`${file}:${index + 1}: not a line of a progress log: give a file that --log wrote`)
  })
}

function asJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

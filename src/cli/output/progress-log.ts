/**
 * The progressive log of `--log`: JSON lines such as `{"run":"…","inputs":1000,"loss":412.7,"hits":811}`, cumulative sums
 * over all inputs that a run has scored. The last line of a run counts, so a restarted peer, which goes on from its last
 * checkpoint under the same id, just goes on writing; files of several peers can be read together or put into one.
 */

import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { z } from 'zod'
import { CodedError } from '../../base/errors.js'

/** A log that cannot be opened, written or read, or that is none. */
export class ProgressLogError extends CodedError {
  static override readonly code = 'ERR_PROGRESS_LOG'
}
const schema = z.strictObject({
  /** Whose sums: a peer's id, or one of a run of `admb train`. */
  run: z.string().min(1),
  /** Inputs scored so far. */
  inputs: z.int().min(0),
  /** Sum of their losses. */
  loss: z.number(),
  /** How many of their classes were predicted; left out for regression. */
  hits: z.int().min(0).optional()
})

export type ProgressEntry = z.infer<typeof schema>

/** An entry from what trainers and peers report. */
export function progressEntry(
  run: string,
  { inputs, averageLoss = 0, accuracy }: { inputs: number; averageLoss?: number; accuracy?: number }
): ProgressEntry {
  const hits = accuracy === undefined ? undefined : Math.round(accuracy * inputs)
  return { run, inputs, loss: averageLoss * inputs, hits }
}

const BEGINNING = '{"run":'
/** Longer than any line. */
const TAIL_BYTES = 4096
/** A line is due at that growth of the inputs, or after that many milliseconds with any. */
const GROWTH = 1.01
const EVERY_MS = 1000

export class ProgressLog {
  readonly #file: string
  readonly #handle: number
  #inputs = 0
  #wrote = Number.NEGATIVE_INFINITY

  /** Opens the file to append to it, without the line that a crash may have cut short. @throws ProgressLogError */
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
      throw new ProgressLogError(`--log ${file}: the file holds something else than a progress log: give another name`)
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
    const { code } = error as NodeJS.ErrnoException
    return new ProgressLogError(
      `--log ${this.#file} cannot be ${what} (${code}): give a file in a folder with room for it`
    )
  }
}

/** What several logs come to together. @throws ProgressLogError */
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
  // What follows the last newline is nothing, or what a crash has cut short.
  lines.pop()
  return lines.map((line, index) => {
    const parsed = schema.safeParse(asJson(line))
    if (parsed.success) return parsed.data
    throw new ProgressLogError(`${file}:${index + 1}: no line of a progress log: give a file that --log wrote`)
  })
}

function asJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

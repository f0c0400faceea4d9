/** Counts malformed inputs and reports them to the caller, or throws under `strict`. */
import { MalformedInputError } from './errors.js'
import type { Malformed } from './types.js'

export interface ReporterOptions {
  /** Throw a `MalformedInputError` at the first malformed input, instead of skipping and counting it. @default false */
  readonly strict?: boolean
  /** Called for each malformed input that is skipped. @default none */
  readonly onMalformed?: (malformed: Malformed) => void
  /** Called with one line about the input as a whole, such as the columns that the model does not know. @default none */
  readonly onNotice?: (notice: string) => void
}

export class Reporter {
  /** Inputs skipped so far. */
  skipped = 0
  /** Number of well-formed inputs so far in this pass. */
  index: () => number = () => 0
  /** Whether rows are read again that have been reported before. */
  isMuted = false
  readonly #strict: boolean
  readonly #onMalformed: ((malformed: Malformed) => void) | undefined

  /** @param source name of the input in messages: a path, or `<stdin>` */
  constructor(
    public source: string,
    options: ReporterOptions
  ) {
    this.#strict = options.strict ?? false
    this.#onMalformed = options.onMalformed
  }

  /**
   * @param line 1-based line (IDX: number of the image)
   * @param column 1-based column in bytes, 0 for the whole line
   * @throws MalformedInputError under `strict`
   */
  report(line: number, column: number, reason: string): void {
    if (this.isMuted) return
    const malformed = { source: this.source, line, column, reason, index: this.index() }
    if (this.#strict) throw new MalformedInputError(malformed)
    this.skipped++
    this.#onMalformed?.(malformed)
  }
}

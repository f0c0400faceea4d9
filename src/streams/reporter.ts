/**
 * One place where malformed inputs go: counted and handed to the caller, or thrown under `strict`.
 */
import { MalformedInputError } from './errors.js'
import type { Malformed } from './types.js'

export interface ReporterOptions {
  /** Throw a `MalformedInputError` at the first malformed input. Default false: skip it and count. */
  readonly strict?: boolean
  /** Called once for each malformed input that is skipped. */
  readonly onMalformed?: (malformed: Malformed) => void
}

export class Reporter {
  /** Inputs skipped so far. */
  skipped = 0
  readonly #strict: boolean
  readonly #onMalformed: ((malformed: Malformed) => void) | undefined

  /** @param source the input's name in messages: a path, or `<stdin>` */
  constructor(
    readonly source: string,
    options: ReporterOptions
  ) {
    this.#strict = options.strict ?? false
    this.#onMalformed = options.onMalformed
  }

  /**
   * @param line 1-based line (for IDX: number of the image)
   * @param column 1-based byte column, 0 for the whole line
   * @throws MalformedInputError under `strict`
   */
  report(line: number, column: number, reason: string): void {
    const malformed = { source: this.source, line, column, reason }
    if (this.#strict) throw new MalformedInputError(malformed)
    this.skipped++
    this.#onMalformed?.(malformed)
  }
}

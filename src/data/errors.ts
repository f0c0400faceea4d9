/**
 * Errors of inputs and their options, and the counter of malformed inputs. All errors are `InputError`s, with a message of one
 * line that says what to do.
 */
import { CodedError, type OnNotice } from '../base/errors.js'
import { callback, flag, type OptionsOf, object, typed } from '../base/option-types.js'
import type { Shard } from './stages.js'
import type { Malformed } from './types.js'

/** Base class of the errors of inputs and their options. */
export class InputError extends CodedError {
  static override readonly code: string = 'ERR_INPUT'
}

/** Options that contradict each other or are out of range. */
export class StreamOptionsError extends InputError {
  static override readonly code: string = 'ERR_INPUT_OPTIONS'
}

/** The format was not given, and the file name does not determine it. */
export class UnknownFormatError extends InputError {
  static override readonly code: string = 'ERR_INPUT_FORMAT'
}

/** The file does not exist. */
export class MissingInputError extends InputError {
  static override readonly code: string = 'ERR_INPUT_MISSING'
}

/** The path is a directory, its permissions forbid reading, or its device failed. */
export class UnreadableInputError extends InputError {
  static override readonly code: string = 'ERR_INPUT_UNREADABLE'
}

/** Compressed data is truncated or damaged. */
export class CorruptInputError extends InputError {
  static override readonly code: string = 'ERR_INPUT_GZIP'
}

/** An IDX file has a wrong magic number, or its counts or sizes do not fit. */
export class IdxError extends InputError {
  static override readonly code: string = 'ERR_INPUT_IDX'
}

/** Text is not UTF-8. */
export class EncodingError extends InputError {
  static override readonly code: string = 'ERR_INPUT_ENCODING'
}

/** A CSV header has a duplicate column, or does not contain a column that an option names. */
export class HeaderError extends InputError {
  static override readonly code: string = 'ERR_INPUT_HEADER'
}

/** A schema is invalid, or the data does not fit the task. */
export class SchemaError extends InputError {
  static override readonly code: string = 'ERR_INPUT_SCHEMA'
}

/** A line is longer than `MAX_LINE_BYTES`. */
export class LineTooLongError extends InputError {
  static override readonly code: string = 'ERR_INPUT_LINE'
}

/** The first malformed input under `strict`. Its message is `file:line:column: reason`. */
export class MalformedInputError extends InputError {
  static override readonly code: string = 'ERR_INPUT_MALFORMED'

  constructor(readonly malformed: Malformed) {
    super(`${malformed.source}:${malformed.line}:${malformed.column}: ${malformed.reason}`)
  }
}

export const reporterTypes = {
  /** Throw a `MalformedInputError` at the first malformed input, instead of skipping and counting it. @default false */
  strict: flag,
  /** The share of the input: each malformed input is counted in one of its shards, although all report it. @default all are counted */
  shard: object<Shard>('{ index: 0, count: 2 }'),
  /** Called for each malformed input that is skipped, of any shard. @default none */
  onMalformed: typed<(malformed: Malformed) => void>(callback),
  /** Called with one line about the input as a whole, such as the columns that the model does not know. @default none */
  onNotice: typed<OnNotice>(callback)
}

/** What becomes of malformed inputs. */
export interface ReporterOptions extends OptionsOf<typeof reporterTypes> {}

export class Reporter {
  /** Inputs of the shard skipped so far. */
  skipped = 0
  /** Number of well-formed inputs so far in this pass. */
  index: () => number = () => 0
  /** Whether rows are read again that have been reported before. */
  isMuted = false
  readonly #strict: boolean
  readonly #shard: Shard | undefined
  readonly #onMalformed: ((malformed: Malformed) => void) | undefined

  /** @param source name of the input in messages: a path, or `<stdin>` */
  constructor(
    public source: string,
    options: ReporterOptions
  ) {
    this.#strict = options.strict ?? false
    this.#shard = options.shard
    this.#onMalformed = options.onMalformed
  }

  /** @throws MalformedInputError for an input behind which none can be read */
  fail(line: number, column: number, reason: string): never {
    throw new MalformedInputError({ source: this.source, line, column, reason, index: this.index() })
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
    if (this.#shard === undefined || shardOf(line, this.#shard.count) === this.#shard.index) this.skipped++
    this.#onMalformed?.(malformed)
  }
}

/**
 * The shard that counts a malformed line. Its number alone decides, because peers that resume do not know how many rows precede it.
 * Multiplicative hashing (Knuth, TAOCP 3, section 6.4) divides a regular pattern among the shards.
 */
function shardOf(line: number, count: number): number {
  return Math.floor(((Math.imul(line, 0x9e3779b1) >>> 0) / 2 ** 32) * count)
}

/** Errors of inputs and their options. All are `InputError`s, with a message of one line that says what to do. */
import { CodedError } from '../base/errors.js'
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

/**
 * The ways in which an input can let its reader down, each with its own name and one line that says what to do. All are
 * `InputError`s, so that a command can tell them from its own faults.
 */
import { CodedError } from '../base/errors.js'
import type { Malformed } from './types.js'

/** Base of everything that is wrong with an input or with how it was asked for. */
export class InputError extends CodedError {
  static override readonly code: string = 'ERR_INPUT'
}

/** Options that contradict each other or lie outside their range. */
export class StreamOptionsError extends InputError {
  static override readonly code: string = 'ERR_INPUT_OPTIONS'
}

/** The format was not given and the file name does not tell it. */
export class UnknownFormatError extends InputError {
  static override readonly code: string = 'ERR_INPUT_FORMAT'
}

/** There is no such file. */
export class MissingInputError extends InputError {
  static override readonly code: string = 'ERR_INPUT_MISSING'
}

/** The path is a directory, may not be read, or its device fails. */
export class UnreadableInputError extends InputError {
  static override readonly code: string = 'ERR_INPUT_UNREADABLE'
}

/** Compressed data that ends early or is damaged. */
export class CorruptGzipError extends InputError {
  static override readonly code: string = 'ERR_INPUT_GZIP'
}

/** An IDX file with another magic number, or whose counts or sizes do not fit. */
export class IdxError extends InputError {
  static override readonly code: string = 'ERR_INPUT_IDX'
}

/** A CSV header that is missing, ambiguous, or lacks a column that was asked for. */
export class HeaderError extends InputError {
  static override readonly code: string = 'ERR_INPUT_HEADER'
}

/** A line longer than `maxLineBytes`. */
export class LineTooLongError extends InputError {
  static override readonly code: string = 'ERR_INPUT_LINE'
}

/** Under `strict`: the first malformed input. Its message is `file:line:column: reason`. */
export class MalformedInputError extends InputError {
  static override readonly code: string = 'ERR_INPUT_MALFORMED'

  constructor(readonly malformed: Malformed) {
    super(`${malformed.source}:${malformed.line}:${malformed.column}: ${malformed.reason}`)
  }
}

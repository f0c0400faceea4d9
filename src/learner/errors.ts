/**
 * What can go wrong between a configuration, a stream and a model. Each class is one kind of mistake, so that a command
 * can tell "fix the options" from "fix this input"; each message is one line that says what to do.
 */
import { CodedError } from '../base/errors.js'

/** A model, rule, averaging or trainer was asked for with options that make no sense. */
export class OptionError extends CodedError {
  static override readonly code = 'ERR_OPTION'
}

/** An input does not fit the model: its label, or a feature number. Nothing was learned from it. */
export class ExampleError extends CodedError {
  static override readonly code = 'ERR_EXAMPLE'
  /** @param row the row within the `Examples` at hand, zero-based */
  constructor(
    readonly row: number,
    message: string
  ) {
    super(message)
  }
}

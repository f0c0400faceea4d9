/** Errors of options and inputs of a model. Their messages are one line that says what to do. */
import { CodedError } from '../base/errors.js'

/** Invalid options of a model, rule, average or trainer. */
export class OptionError extends CodedError {
  static override readonly code = 'ERR_OPTION'
}

/** The label or a feature of an input does not fit the model. Nothing of the input was learned. */
export class ExampleError extends CodedError {
  static override readonly code = 'ERR_EXAMPLE'
  /** @param row zero-based row within the `Examples` */
  constructor(
    readonly row: number,
    message: string
  ) {
    super(message)
  }
}

/**
 * What can go wrong between a configuration, a stream and a model. Each class is one kind of mistake, so that a command
 * can tell "fix the options" from "fix this input"; each message is one line that says what to do.
 */

/** A model, rule, averaging or trainer was asked for with options that make no sense. */
export class OptionError extends Error {
  static readonly code = 'ERR_OPTION'
  readonly code = OptionError.code
  override readonly name = 'OptionError'
}

/** An input does not fit the model: its label, or a feature number. Nothing was learned from it. */
export class ExampleError extends Error {
  static readonly code = 'ERR_EXAMPLE'
  readonly code = ExampleError.code
  override readonly name = 'ExampleError'
  /** @param row the row within the `Examples` at hand, zero-based */
  constructor(
    readonly row: number,
    message: string
  ) {
    super(message)
  }
}

/** A loss or gradient left the range of float32: it is refused before it touches a sum. */
export class DivergenceError extends Error {
  static readonly code = 'ERR_DIVERGENCE'
  readonly code = DivergenceError.code
  override readonly name = 'DivergenceError'
}

/**
 * Base class of the project's errors. A subclass sets the static `code`; `docs/errors.md` lists all codes.
 *
 * @example
 * ```ts
 * export class OptionError extends CodedError {
 *   static override readonly code = 'ERR_OPTION'
 * }
 * ```
 */
export abstract class CodedError extends Error {
  declare static readonly code: string
  /** Stable identifier, `ERR_…`. */
  readonly code: string

  /** @param message one line that says what to do */
  constructor(message?: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = new.target.code
  }
}

/** The numbers of a predictor left the range of float32. */
export class DivergenceError extends CodedError {
  static override readonly code = 'ERR_DIVERGENCE'
}

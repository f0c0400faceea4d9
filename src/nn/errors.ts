import { CodedError } from '../base/errors.js'

/** A model that cannot be made, or weights that do not fit it. One line that says what to do. */
export class ModelError extends CodedError {
  static override readonly code = 'ERR_MODEL'
}

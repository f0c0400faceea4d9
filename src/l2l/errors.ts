/** A model that cannot be made, or weights that do not fit it. One line that says what to do. */
export class ModelError extends Error {
  static readonly code = 'ERR_MODEL'
  readonly code = ModelError.code
  override readonly name = 'ModelError'
}

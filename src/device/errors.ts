/** A device that cannot be opened, or that failed. */
export class DeviceError extends Error {
  static readonly code = 'ERR_DEVICE'
  readonly code = DeviceError.code
  override readonly name = 'DeviceError'
}

/** A backend that failed at its work; who drives it can say at what. */
export class BackendError extends DeviceError {}

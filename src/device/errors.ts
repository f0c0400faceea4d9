/** A device that cannot be opened, or that failed. */
export class DeviceError extends Error {
  static readonly code = 'ERR_DEVICE'
  readonly code = DeviceError.code
  override readonly name = 'DeviceError'
}

import { CodedError } from '../base/errors.js'

/** A device that cannot be opened, or that failed. */
export class DeviceError extends CodedError {
  static override readonly code = 'ERR_DEVICE'
}

/** A backend that failed at its work; who drives it can say at what. */
export class BackendError extends DeviceError {}

/** Where layers are executed: choosing a device and measuring it. */
export { DeviceError } from './errors.js'
export { openDevice } from './open.js'
export { DEVICE_NAMES, type Device, type DeviceName } from './types.js'

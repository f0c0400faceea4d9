/** Devices that execute layers: the public interface of the module. */
export { watchBuffers } from './buffers.js'
export { ERF_POLYNOMIAL, ERF_SCALE } from './erf.js'
export { runFused } from './fused.js'
export { installTensorflow } from './install-tensorflow.js'
export { openDevice, openedDevice } from './open.js'
export { packageFolder } from './optional-packages.js'
export { BackendError, DEVICE_NAMES, type Device, DeviceError, type DeviceName } from './types.js'

/** Devices that execute layers: the public interface of the module. */

export { installTensorflow } from './install-tensorflow.js'
export { openDevice, openedDevice, runFused, watchBuffers } from './open.js'
export { packageFolder } from './optional-packages.js'
export {
  BackendError,
  DEVICE_NAMES,
  type Device,
  DeviceError,
  type DeviceName,
  ERF_POLYNOMIAL,
  ERF_SCALE
} from './types.js'

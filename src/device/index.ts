/** Devices that execute layers: the public interface of the module. */
export type { AffineKernel } from './blas-affine.js'
export type { HeadKernel } from './blas-heads.js'
export { installTensorflow } from './install-tensorflow.js'
export { openDevice, openedDevice } from './open.js'
export { packageFolder } from './optional-packages.js'
export { BackendError, DEVICE_NAMES, type Device, DeviceError, type DeviceName } from './types.js'
export { ERF_POLYNOMIAL, ERF_SCALE } from './wasm-code/elementwise.js'
export type { WasmKernel } from './wasm-kernels.js'

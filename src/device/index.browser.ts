/** The device of a tab, on which layers are executed in plain JavaScript: `#device` in `package.json`. */
import type { Tensor } from '#tfjs'
import type { Device } from './types.js'

export { BackendError, DeviceError, ERF_POLYNOMIAL, ERF_SCALE } from './types.js'

const device: Device = {
  name: 'cpu',
  detail: 'in plain JavaScript',
  reason: 'browsers have no other',
  hasFastProducts: true,
  // Tensors do share it, but nothing writes to weights while this thread executes layers.
  sharesHostMemory: false,
  peakBytes: () => 0
}

/** The device is always open. */
export function openedDevice(): Device {
  return device
}

/** There are no custom kernels. */
export function runFused<Result = Tensor>(..._given: readonly unknown[]): Result | undefined {
  return undefined
}

/** Memory is not measured: the garbage collector frees it. */
export function watchBuffers(_onChange: (bytes: number) => void): void {}

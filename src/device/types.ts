/**
 * Devices that execute layers. All arithmetic uses the TensorFlow.js API. The executor's meter enforces the limit on
 * device memory; a device only reports the memory that its backend has allocated.
 */
import { CodedError } from '../base/errors.js'

/** A device cannot be opened, or failed. */
export class DeviceError extends CodedError {
  static override readonly code = 'ERR_DEVICE'
}

/** A backend failed during execution. The executor adds the name of the layer. */
export class BackendError extends DeviceError {}

/** In the order in which `auto` tries them. */
export const DEVICE_NAMES = ['tensorflow-gpu', 'tensorflow', 'webgpu', 'wasm', 'cpu'] as const
export type DeviceName = (typeof DEVICE_NAMES)[number]

export interface DeviceOptions {
  /** For wasm: name or path of the BLAS library, or `none`. @default ADMB_BLAS, or the first library found */
  readonly blas?: string
  /** Threads of a BLAS product. @default ADMB_BLAS_THREADS, or 1 */
  readonly blasThreads?: number
}

/** A started TensorFlow.js backend. */
export interface Backend {
  /** A short description of the hardware or library that it uses. */
  readonly detail: string
  /** Whether transposed and batched matrix products are as fast as plain ones. */
  readonly hasFastProducts: boolean
  /** Whether a tensor may share memory with the host array that it was made from. */
  readonly sharesHostMemory: boolean
  /** Peak bytes allocated by the backend. */
  peakBytes(): number
}

export interface Device extends Backend {
  readonly name: DeviceName
  /** Why `auto` chose this device, and why the devices tried before it do not work. One line. */
  readonly reason: string
}

/** The error function erf(x) = 1 − (a₁t + … + a₅t⁵)·exp(−x²) with t = 1/(1 + p·x), x ≥ 0: p, and a₅ to a₁ (Abramowitz and Stegun, 7.1.26). */
export const ERF_SCALE = 0.3275911
export const ERF_POLYNOMIAL = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592] as const

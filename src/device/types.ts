/**
 * What the relay needs to know of the device that executes layers. All arithmetic goes through the TensorFlow.js API. A limit
 * on the device's memory is kept by the relay's meter, which sees every buffer; a device tells what physically happened.
 */

/** In the order in which `auto` tries them. */
export const DEVICE_NAMES = ['tensorflow-gpu', 'tensorflow', 'webgpu', 'wasm', 'cpu'] as const
export type DeviceName = (typeof DEVICE_NAMES)[number]

export interface DeviceOptions {
  /** For wasm: the BLAS library's name or path, or `none`. Default: ADMB_BLAS, or else the first that is found. */
  readonly blas?: string
  /** Threads of a BLAS product. Default: ADMB_BLAS_THREADS, or else 1. */
  readonly blasThreads?: number
}

/** What a backend of TensorFlow.js says of itself once it has started. */
export interface Backend {
  /** What it computes with, in a few words. */
  readonly detail: string
  /** Whether transposed and batched matrix products are as fast as plain ones. */
  readonly hasFastProducts: boolean
  /** Whether a tensor may go on reading the host array that it was made of. */
  readonly sharesHostMemory: boolean
  /** Most bytes physically taken so far, other than the program's own. */
  peakBytes(): number
}

export interface Device extends Backend {
  readonly name: DeviceName
  /** Why this one: which others were tried and what kept them from working. One line. */
  readonly reason: string
}

/** What the relay needs to know of the device that executes layers. All arithmetic goes through the TensorFlow.js API. */

export const DEVICE_NAMES = ['tensorflow-gpu', 'tensorflow', 'webgpu', 'wasm', 'cpu'] as const
export type DeviceName = (typeof DEVICE_NAMES)[number]

export interface Device {
  readonly name: DeviceName
  /** Why this one: which others were tried and what kept them from working. One line. */
  readonly why: string
  /** Most bytes that may be on the device at once; undefined for what it has. */
  readonly memoryLimit: number | undefined
  /** Bytes on the device now, as the device knows them. */
  readonly bytes: number
  /** The most bytes that have been on the device since the last `resetPeak`. */
  readonly peakBytes: number
  resetPeak(): void
  /** Stops using the device. */
  close(): void
}

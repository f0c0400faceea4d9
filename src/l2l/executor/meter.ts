/**
 * Measures and limits the bytes on the device: every buffer from allocation to disposal, shared buffers counted once.
 * The engine's own count has no peak and no limit. Temporary memory of running kernels is not counted.
 */
import { DeviceError, watchBuffers } from '#device'
import { formatExcess } from '../../base/format-bytes.js'

export class DeviceMeter {
  bytes = 0
  peakBytes = 0
  /** Limit of the bytes on the device. */
  limit: number = Number.POSITIVE_INFINITY
  /** What the device executes, for error messages. */
  currentOperation = 'the minibatch'

  /** Resets the peak to the current size. */
  resetPeak(): void {
    this.peakBytes = this.bytes
  }

  /** @param bytes of a buffer that was allocated; negative when one was freed */
  changed(bytes: number): void {
    this.bytes += bytes
    if (bytes < 0) return
    if (this.bytes > this.peakBytes) this.peakBytes = this.bytes
    if (this.bytes > this.limit) throw new OverBudgetError(this.currentOperation, this.bytes, this.limit)
  }
}

/** A layer exceeds the device's memory limit. */
export class OverBudgetError extends DeviceError {
  constructor(
    readonly what: string,
    readonly bytes: number,
    readonly limit: number,
    advice = 'use a smaller --microbatch, --stash host, or --schedule l2l'
  ) {
    const [allowed, needed] = formatExcess(limit, bytes)
    super(`${what} needs at least ${needed} on the device, --device-memory allows ${allowed}: ${advice}`)
  }
}

let meter: DeviceMeter | undefined

/** The meter of this thread's engine, which is a singleton. */
export function deviceMeter(): DeviceMeter {
  if (meter !== undefined) return meter
  const created = new DeviceMeter()
  watchBuffers(bytes => created.changed(bytes))
  meter = created
  return meter
}

/** Opening a device: the one asked for, or the first that works. */
import * as tf from '@tensorflow/tfjs-core'
import { DeviceError } from './errors.js'
import type { Device, DeviceName } from './types.js'

/** In the order in which `auto` tries them. */
const BACKENDS: readonly { readonly name: DeviceName; readonly load: () => Promise<Backend> }[] = [
  { name: 'wasm', load: async () => (await import('./wasm.js')).backend },
  { name: 'cpu', load: async () => (await import('./cpu.js')).backend }
]

/** A TensorFlow.js backend, registered by the import of its module. */
export interface Backend {
  readonly name: string
  /** Bytes on the device now. */
  bytes(): number
}

/**
 * @param asked the device, or `auto` for the first that works
 * @throws DeviceError if it does not work here, or none does
 */
export async function openDevice(asked: DeviceName | 'auto', memoryLimit?: number): Promise<Device> {
  const failed: string[] = []
  for (const { name, load } of BACKENDS) {
    if (asked !== 'auto' && asked !== name) continue
    try {
      const backend = await load()
      if (!(await tf.setBackend(backend.name))) throw new Error('it does not start')
      await tf.ready()
      return opened(name, backend, failed, memoryLimit)
    } catch (error) {
      failed.push(`${name}: ${(error as Error).message.split('\n')[0]}`)
    }
  }
  throw new DeviceError(failed.length > 0 ? failed.join('; ') : `there is no device ${asked}`)
}

function opened(
  name: DeviceName,
  backend: Backend,
  failed: readonly string[],
  memoryLimit: number | undefined
): Device {
  let peak = backend.bytes()
  return {
    name,
    why: failed.length === 0 ? `${name} works` : `${name} works; ${failed.join('; ')}`,
    memoryLimit,
    get bytes() {
      return backend.bytes()
    },
    get peakBytes() {
      peak = Math.max(peak, backend.bytes())
      return peak
    },
    resetPeak() {
      peak = backend.bytes()
    },
    close: () => undefined
  }
}

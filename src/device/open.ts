/**
 * Opens the requested device, or the first that works. A thread has one device, because TensorFlow.js has one active
 * backend.
 */
import {
  type Backend,
  BackendError,
  DEVICE_NAMES,
  type Device,
  DeviceError,
  type DeviceName,
  type DeviceOptions
} from './types.js'

const OPENERS: Readonly<Record<DeviceName, (options: DeviceOptions, isExplicit: boolean) => Promise<Backend>>> = {
  'tensorflow-gpu': async () => (await import('./tensorflow.js')).openTensorflow('@tensorflow/tfjs-node-gpu'),
  tensorflow: async () => (await import('./tensorflow.js')).openTensorflow('@tensorflow/tfjs-node'),
  webgpu: async (_, isExplicit) => (await import('./webgpu.js')).openWebgpu(isExplicit),
  wasm: async options => (await import('./wasm.js')).openWasm(options),
  cpu: async () => (await import('./cpu.js')).openCpu()
}

let current: Device | undefined

/**
 * @param requested the device, or `auto` for the first that works
 * @throws DeviceError if the device, or no device, works on this machine
 */
export async function openDevice(requested: DeviceName | 'auto', options: DeviceOptions = {}): Promise<Device> {
  const failed: string[] = []
  const merged = { ...fromEnvironment(), ...options }
  for (const name of requested === 'auto' ? DEVICE_NAMES : [requested]) {
    try {
      const backend = await OPENERS[name](merged, requested === name)
      const works = `${name} works, ${backend.detail}`
      current = { ...backend, name, reason: failed.length === 0 ? works : `${works}; ${failed.join('; ')}` }
      return current
    } catch (error) {
      // An explicitly requested library is missing: do not fall back to another device.
      if (error instanceof DeviceError && !(error instanceof BackendError)) throw error
      failed.push(`${name}: ${(error as Error).message.split('\n')[0]}`)
    }
  }
  throw new DeviceError(failed.join('; '))
}

/** The device of this thread. @throws DeviceError if no device was opened */
export function openedDevice(): Device {
  if (current === undefined) throw new DeviceError('no device is open in this thread; call openDevice first')
  return current
}

function fromEnvironment(): DeviceOptions {
  const { ADMB_BLAS: blas, ADMB_BLAS_THREADS: threads } = process.env
  if (threads !== undefined && !/^[1-9]\d{0,2}$/.test(threads)) {
    throw new DeviceError(`invalid ADMB_BLAS_THREADS ${threads}; expected a number from 1 to 999`)
  }
  return { blas, blasThreads: threads === undefined ? undefined : Number(threads) }
}

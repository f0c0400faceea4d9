/** Opening a device: the one asked for, or the first that works. TensorFlow.js has one backend at a time, and so has a thread. */
import {
  type Backend,
  BackendError,
  DEVICE_NAMES,
  type Device,
  DeviceError,
  type DeviceName,
  type DeviceOptions
} from './types.js'

const OPENERS: Readonly<Record<DeviceName, (options: DeviceOptions, isAsked: boolean) => Promise<Backend>>> = {
  'tensorflow-gpu': async () => (await import('./tensorflow.js')).openTensorflow('@tensorflow/tfjs-node-gpu'),
  tensorflow: async () => (await import('./tensorflow.js')).openTensorflow('@tensorflow/tfjs-node'),
  webgpu: async (_, isAsked) => (await import('./webgpu.js')).openWebgpu(isAsked),
  wasm: async options => (await import('./wasm.js')).openWasm(options),
  cpu: async () => (await import('./cpu.js')).openCpu()
}

let current: Device | undefined

/**
 * @param asked the device, or `auto` for the first that works
 * @throws DeviceError if it does not work here, or none does
 */
export async function openDevice(asked: DeviceName | 'auto', options: DeviceOptions = {}): Promise<Device> {
  const failed: string[] = []
  const given = { ...fromEnvironment(), ...options }
  for (const name of asked === 'auto' ? DEVICE_NAMES : [asked]) {
    try {
      const backend = await OPENERS[name](given, asked === name)
      const works = `${name} works, ${backend.detail}`
      current = { ...backend, name, reason: failed.length === 0 ? works : `${works}; ${failed.join('; ')}` }
      return current
    } catch (error) {
      // Something was asked for that is not there: another device would not be what was meant.
      if (error instanceof DeviceError && !(error instanceof BackendError)) throw error
      failed.push(`${name}: ${(error as Error).message.split('\n')[0]}`)
    }
  }
  throw new DeviceError(failed.join('; '))
}

/** The device of this thread. @throws DeviceError if none was opened */
export function openedDevice(): Device {
  if (current === undefined) throw new DeviceError('no device was opened in this thread: call openDevice first')
  return current
}

function fromEnvironment(): DeviceOptions {
  const { ADMB_BLAS: blas, ADMB_BLAS_THREADS: threads } = process.env
  if (threads !== undefined && !/^[1-9]\d{0,2}$/.test(threads)) {
    throw new DeviceError(`ADMB_BLAS_THREADS is ${threads}: give the number of threads`)
  }
  return { blas, blasThreads: threads === undefined ? undefined : Number(threads) }
}

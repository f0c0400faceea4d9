/**
 * The device of this thread: the requested one, or the first that works; its custom kernels, and the bytes of its buffers. A
 * thread has one device, because TensorFlow.js has one active backend.
 */

import * as tf from '#tfjs'
import type { AffineKernel, HeadKernel } from './blas-kernels.js'
import {
  type Backend,
  BackendError,
  DEVICE_NAMES,
  type Device,
  DeviceError,
  type DeviceName,
  type DeviceOptions
} from './types.js'
import type { WasmKernel } from './wasm-kernels.js'

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

/** The internals of the engine that track the allocation and disposal of buffers. */
interface Engine {
  readonly state: {
    readonly numBytes: number
    readonly tensorInfo: { has(id: object): boolean; get(id: object): { readonly bytes: number } | undefined }
  }
  trackTensor(tensor: tf.Tensor, backend: unknown): void
  removeDataId(id: object, backend: unknown): void
}

/** Call it once per thread. @param onChange called with the bytes of each buffer that is allocated, negative when it is freed */
export function watchBuffers(onChange: (bytes: number) => void): void {
  const engine = tf.engine() as unknown as Engine
  const { tensorInfo, numBytes } = engine.state
  const track = engine.trackTensor.bind(engine)
  const remove = engine.removeDataId.bind(engine)
  onChange(numBytes)
  engine.trackTensor = (tensor, backend) => {
    const isNew = !tensorInfo.has(tensor.dataId)
    track(tensor, backend)
    if (isNew) onChange(tensorInfo.get(tensor.dataId)?.bytes ?? 0)
  }
  engine.removeDataId = (id, backend) => {
    const bytes = tensorInfo.get(id)?.bytes ?? 0
    remove(id, backend)
    if (!tensorInfo.has(id)) onChange(-bytes)
  }
}

/**
 * Runs a custom kernel.
 * @returns undefined if the device does not have the kernel
 */
export function runFused<Result extends tf.Tensor | tf.Tensor[] = tf.Tensor>(
  kernel: AffineKernel | HeadKernel | WasmKernel,
  inputs: tf.NamedTensorMap,
  attributes: object = {}
): Result | undefined {
  if (tf.getKernel(kernel, tf.getBackend()) === undefined) return undefined
  return tf.engine().runKernel(kernel, inputs, attributes as tf.NamedAttrMap) as Result
}

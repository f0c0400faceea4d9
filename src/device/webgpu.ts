/**
 * A GPU through WebGPU: the package webgpu (Dawn) provides the browser API that TensorFlow.js's backend requires. Both
 * packages are optional. Software drivers are for tests only: they are slower than WebAssembly.
 */
import { pathToFileURL } from 'node:url'
import * as tf from '#tfjs'
import { packageFolder, requireFrom, withoutWarnings } from './optional-packages.js'
import type { Backend } from './types.js'
import { DawnEvents, patchBackend, type WebgpuBackend } from './webgpu-backend.js'
import { makeProductsDeterministic, registerWebgpuKernels, uploadThroughQueue } from './webgpu-kernels.js'

interface Dawn {
  create(flags: string[]): Gpu
  readonly globals: object
}

interface Gpu {
  requestAdapter(options: object): Promise<Adapter | null>
}

interface Adapter {
  readonly info: {
    readonly device: string
    readonly description: string
    readonly vendor: string
    readonly isFallbackAdapter: boolean
  }
  readonly features: unknown
  readonly limits: unknown
  requestDevice(options: object): Promise<object>
}

const BACKEND = '@tensorflow/tfjs-backend-webgpu'

/** State of this thread for reopening the device. The Dawn instance must outlive all objects that it creates. */
let opened: { readonly gpu: Gpu; readonly adapter: Adapter; readonly peakBytes: () => number } | undefined

/**
 * @param acceptsSoftware whether a software driver is acceptable
 * @throws Error, BackendError
 */
export async function openWebgpu(acceptsSoftware: boolean): Promise<Backend> {
  opened ??= await start(acceptsSoftware)
  const { adapter, peakBytes } = opened
  if (!acceptsSoftware) refuseSoftware(adapter)
  if (!(await tf.setBackend('webgpu'))) throw new Error('the backend does not start')
  const detail = `on ${adapterName(adapter)}${adapter.info.isFallbackAdapter ? ' (software)' : ''}`
  return { detail, hasFastProducts: true, sharesHostMemory: false, peakBytes }
}

async function start(acceptsSoftware: boolean) {
  const folder = packageFolder('webgpu')
  const { create, globals } = (await import(
    pathToFileURL(requireFrom('webgpu', folder).resolve('webgpu')).href
  )) as Dawn
  const load = requireFrom(BACKEND, folder)
  const events = new DawnEvents()
  const gpu = events.call(() => create([]))
  const adapter = await events.waitAsync(() => gpu.requestAdapter({ powerPreference: 'high-performance' }))
  if (adapter === null) throw new Error('no GPU with a driver (Vulkan, Metal or Direct3D 12) was found')
  if (!acceptsSoftware) refuseSoftware(adapter)
  Object.assign(globalThis, globals)
  await withNavigator(adapter, events, async () => {
    withoutWarnings(() => load(BACKEND))
    if (!(await tf.setBackend('webgpu'))) throw new Error('the backend does not start')
  })
  registerWebgpuKernels()
  const backend = tf.backend() as unknown as WebgpuBackend
  const peakBytes = patchBackend(backend, events)
  makeProductsDeterministic(backend)
  uploadThroughQueue(backend)
  tf.tidy(() => tf.add(tf.tensor1d([1, 2]), 1).dataSync())
  return { gpu, adapter, peakBytes }
}

/** Provides `navigator.gpu`, which the backend reads while it is loaded and started. */
async function withNavigator(adapter: Adapter, events: DawnEvents, work: () => Promise<void>): Promise<void> {
  const { info, features, limits } = adapter
  const requestDevice = (options: object) => events.waitAsync(() => adapter.requestDevice(options))
  const gpu = { requestAdapter: async () => ({ info, features, limits, requestDevice }) }
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator')
  Object.defineProperty(globalThis, 'navigator', { value: { gpu, userAgent: 'Node.js' }, configurable: true })
  try {
    await work()
  } finally {
    if (before === undefined) Reflect.deleteProperty(globalThis, 'navigator')
    else Object.defineProperty(globalThis, 'navigator', before)
  }
}

function refuseSoftware(adapter: Adapter): void {
  if (adapter.info.isFallbackAdapter) {
    throw new Error(`no GPU was found, only the software driver ${adapterName(adapter)}`)
  }
}

/** With Vulkan, `description` is the driver and not the GPU, so both are named. */
function adapterName({ info: { device, description, vendor } }: Adapter): string {
  const gpu = device || vendor || 'a GPU'
  return description && description !== gpu ? `${gpu} (${description})` : gpu
}

/**
 * A GPU through WebGPU: the package webgpu (Dawn) gives Node what TensorFlow.js's backend expects of a browser. Both packages are
 * optional. Whether tensors can be read synchronously, as the relay does it, is tried: the backend takes a canvas for that, which
 * Node lacks so far.
 */
import * as tf from '@tensorflow/tfjs-core'
import { optionalImport } from './optional.js'
import { processPeak } from './process-peak.js'
import type { Backend } from './types.js'

/** The parts of WebGPU that are used here. */
interface Gpu {
  requestAdapter(): Promise<{ readonly info?: { readonly description?: string; readonly vendor?: string } } | null>
}

export async function openWebgpu(): Promise<Backend> {
  const { create, globals } = (await optionalImport('webgpu')) as { create(flags: string[]): Gpu; globals: object }
  const gpu = create([])
  const adapter = await gpu.requestAdapter()
  if (adapter === null) throw new Error('there is no GPU with a driver (Vulkan, Metal or Direct3D 12)')
  Object.assign(globalThis, globals)
  Object.defineProperty(globalThis, 'navigator', { value: { gpu, userAgent: 'Node.js' }, configurable: true })
  const peakBytes = processPeak()
  await optionalImport('@tensorflow/tfjs-backend-webgpu')
  if (!(await tf.setBackend('webgpu'))) throw new Error('it does not start')
  try {
    tf.tidy(() => tf.add(tf.tensor1d([1, 2]), 1).dataSync())
  } catch (error) {
    throw new Error(`its tensors cannot be read synchronously here (${(error as Error).message})`)
  }
  const { description, vendor } = adapter.info ?? {}
  return { detail: `on ${description || vendor || 'a GPU'}`, hasFastProducts: true, sharesHostMemory: true, peakBytes }
}

/**
 * TensorFlow's own kernels: the packages tfjs-node and tfjs-node-gpu with their native library, where they are installed: beside
 * this program, or in the folder that `install-tensorflow.ts` fills.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import * as tf from '@tensorflow/tfjs-core'
import { loadSilently } from './native-log.js'
import { processPeak } from './process-peak.js'
import { quietly } from './quiet.js'
import type { Backend } from './types.js'

export type TensorflowPackage = '@tensorflow/tfjs-node' | '@tensorflow/tfjs-node-gpu'

/** The parts of the backend that are looked at. */
interface NodeBackend {
  readonly binding: { readonly TF_Version?: string }
  readonly isUsingGpuDevice: boolean
}

/** The folder of TensorFlow installations: ADMB_TENSORFLOW, or a place in the user's cache. */
export function tensorflowFolder(): string {
  const { ADMB_TENSORFLOW, XDG_CACHE_HOME } = process.env
  return ADMB_TENSORFLOW ?? join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'admb', 'tensorflow')
}

export async function openTensorflow(name: TensorflowPackage): Promise<Backend> {
  const load = placeOf(name)
  if (load === undefined) throw new Error(`the package ${name} is not installed`)
  const peakBytes = processPeak()
  await loadPackage(() => load(name))
  if (!(await tf.setBackend('tensorflow'))) throw new Error('it does not start')
  const { binding, isUsingGpuDevice } = tf.backend() as unknown as NodeBackend
  if (name === '@tensorflow/tfjs-node-gpu' && !isUsingGpuDevice) throw new Error('TensorFlow finds no GPU with CUDA')
  const version = `with TensorFlow ${binding.TF_Version ?? ''}`.trim()
  return {
    detail: isUsingGpuDevice ? `${version} on a GPU` : version,
    hasFastProducts: true,
    sharesHostMemory: true,
    peakBytes
  }
}

/** What requires the package from where it is. */
function placeOf(name: TensorflowPackage): NodeJS.Require | undefined {
  const places = [import.meta.url, join(tensorflowFolder(), 'package.json')]
  return places.map(place => createRequire(place)).find(require => isThere(require, name))
}

function isThere(require: NodeJS.Require, name: string): boolean {
  return (require.resolve.paths(name) ?? []).some(folder => existsSync(join(folder, name, 'package.json')))
}

/**
 * The package brings a TensorFlow.js of its own, which uses the engine that is there but registers kernels once more, with a
 * warning for each; and it wants a function that Node.js 23 no longer has.
 */
async function loadPackage(load: () => void): Promise<void> {
  const util = createRequire(import.meta.url)('node:util') as { isNullOrUndefined?: (value: unknown) => boolean }
  util.isNullOrUndefined ??= value => value === undefined || value === null
  await loadSilently(() => quietly(load))
}

/**
 * TensorFlow's own kernels: the packages tfjs-node and tfjs-node-gpu with their native library, where they are installed: beside
 * this program, or in the folder that `install-tensorflow.ts` fills.
 */
import { createRequire } from 'node:module'
import * as tf from '@tensorflow/tfjs-core'
import { setLogLevel } from './native-log.js'
import { packageFolder, requireFrom } from './optional.js'
import { processPeak } from './process-peak.js'
import { withoutWarnings } from './quiet.js'
import type { Backend } from './types.js'

export type TensorflowPackage = '@tensorflow/tfjs-node' | '@tensorflow/tfjs-node-gpu'

/** The parts of the backend that are looked at. */
interface NodeBackend {
  readonly binding: { readonly TF_Version?: string }
  readonly isUsingGpuDevice: boolean
}

export async function openTensorflow(name: TensorflowPackage): Promise<Backend> {
  const load = requireFrom(name, packageFolder('tensorflow'))
  const peakBytes = processPeak()
  await prepare()
  withoutWarnings(() => load(name))
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

/** The package wants a function that Node.js 23 no longer has, and its library talks. */
async function prepare(): Promise<void> {
  const util = createRequire(import.meta.url)('node:util') as { isNullOrUndefined?: (value: unknown) => boolean }
  util.isNullOrUndefined ??= value => value === undefined || value === null
  await setLogLevel()
}

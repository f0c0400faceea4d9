/**
 * TensorFlow's native kernels, by the packages tfjs-node and tfjs-node-gpu. They are loaded from this program's
 * dependencies or from the folder that `install-tensorflow.ts` fills.
 */
import { createRequire } from 'node:module'
import * as tf from '#tfjs'
import { packageFolder, processPeak, requireFrom, withoutWarnings } from './optional-packages.js'
import type { Backend } from './types.js'

export type TensorflowPackage = '@tensorflow/tfjs-node' | '@tensorflow/tfjs-node-gpu'

/** The backend properties that are read here. */
interface NodeBackend {
  readonly binding: { readonly TF_Version?: string }
  readonly isUsingGpuDevice: boolean
}

export async function openTensorflow(name: TensorflowPackage): Promise<Backend> {
  const load = requireFrom(name, packageFolder('tensorflow'))
  const peakBytes = processPeak()
  polyfill()
  await setLogLevel()
  withoutWarnings(() => load(name))
  if (!(await tf.setBackend('tensorflow'))) throw new Error('the backend does not start')
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

/** The package requires a function that Node.js 23 removed. */
function polyfill(): void {
  const util = createRequire(import.meta.url)('node:util') as { isNullOrUndefined?: (value: unknown) => boolean }
  util.isNullOrUndefined ??= value => value === undefined || value === null
}

const LOG_LEVEL = 'TF_CPP_MIN_LOG_LEVEL'
/** Errors only. */
const ERRORS = '2'

/**
 * Sets the log level of TensorFlow's library before it is loaded, unless the user has set it. The library reads it by
 * `getenv`, which does not see a worker thread's `process.env`, a copy.
 */
export async function setLogLevel(): Promise<void> {
  if (process.env[LOG_LEVEL] !== undefined) return
  process.env[LOG_LEVEL] = ERRORS
  if (process.platform === 'win32') return
  try {
    const koffi = (await import('koffi')).default
    koffi.load(null).func('int setenv(const char *, const char *, int)')(LOG_LEVEL, ERRORS, 0)
  } catch {
    // Without the optional package koffi the library logs a few lines in worker threads.
  }
}

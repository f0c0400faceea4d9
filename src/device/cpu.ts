/** TensorFlow.js in plain JavaScript: works everywhere, but slowly. */
import * as tf from '#tfjs'
import { processPeak, withoutWarnings } from './optional-packages.js'
import type { Backend } from './types.js'

export async function openCpu(): Promise<Backend> {
  // The package tfjs-node registers its own cpu backend.
  if (tf.findBackendFactory('cpu') === null) await import('#tfjs-cpu')
  if (!(await tf.setBackend('cpu'))) throw new Error('the backend does not start')
  // The first tensor logs a recommendation of another backend.
  withoutWarnings(() => tf.scalar(0).dispose())
  return { detail: 'in plain JavaScript', hasFastProducts: true, sharesHostMemory: true, peakBytes: processPeak() }
}
